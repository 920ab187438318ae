// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "tintype",
    products: [
        .library(name: "Tintype", targets: ["Tintype"]),
        .library(name: "TintypePrometheus", targets: ["TintypePrometheus"]),
        .library(name: "TintypeTargets", targets: ["TintypeTargets"]),
        .executable(name: "tintype", targets: ["TintypeCommand"]),
    ],
    targets: [
        // Ground: one target per C library.
        .systemLibrary(
            name: "CTintypeCurl",
            path: "Sources/CLibraries/CTintypeCurl",
            pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]
        ),
        .systemLibrary(
            name: "CTintypeLibJPEG",
            path: "Sources/CLibraries/CTintypeLibJPEG",
            pkgConfig: "libjpeg",
            providers: [.apt(["libjpeg-dev"])]
        ),
        .systemLibrary(
            name: "CTintypeTurboJPEG",
            path: "Sources/CLibraries/CTintypeTurboJPEG",
            pkgConfig: "libturbojpeg",
            providers: [.apt(["libturbojpeg0-dev"])]
        ),
        .systemLibrary(
            name: "CTintypeSPNG",
            path: "Tests/CTintypeSPNG",
            pkgConfig: "spng",
            providers: [.apt(["libspng-dev"])]
        ),
        .systemLibrary(
            name: "CTintypeDeflate",
            path: "Sources/CLibraries/CTintypeDeflate",
            pkgConfig: "libdeflate",
            providers: [.apt(["libdeflate-dev"])]
        ),
        .systemLibrary(
            name: "CTintypeZlib",
            path: "Sources/CLibraries/CTintypeZlib",
            pkgConfig: "zlib",
            providers: [.apt(["zlib1g-dev"])]
        ),
        .systemLibrary(
            name: "CTintypeBrotli",
            path: "Sources/CLibraries/CTintypeBrotli",
            pkgConfig: "libbrotlidec",
            providers: [.apt(["libbrotli-dev"])]
        ),
        .systemLibrary(
            name: "CTintypeZstd",
            path: "Sources/CLibraries/CTintypeZstd",
            pkgConfig: "libzstd",
            providers: [.apt(["libzstd-dev"])]
        ),
        .systemLibrary(
            name: "CTintypeWebP",
            path: "Sources/CLibraries/CTintypeWebP",
            pkgConfig: "libwebp",
            providers: [.apt(["libwebp-dev"])]
        ),
        .systemLibrary(
            name: "CTintypeCrypto",
            path: "Sources/CLibraries/CTintypeCrypto",
            pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"])]
        ),
        .systemLibrary(
            name: "CTintypeXXHash",
            path: "Sources/CLibraries/CTintypeXXHash",
            pkgConfig: "libxxhash",
            providers: [.apt(["libxxhash-dev"])]
        ),
        .systemLibrary(
            name: "CTintypeLCMS2",
            path: "Sources/CLibraries/CTintypeLCMS2",
            pkgConfig: "lcms2",
            providers: [.apt(["liblcms2-dev"])]
        ),
        // libjpeg reports errors by longjmp; this catches them before they reach Swift.
        .target(
            name: "CTintypeJPEG",
            dependencies: ["CTintypeLibJPEG"],
            path: "Sources/CLibraries/CTintypeJPEG",
            cSettings: [.define("_GNU_SOURCE")]
        ),
        .target(name: "CTintypeShims", path: "Sources/CLibraries/CTintypeShims", cSettings: [.define("_GNU_SOURCE")]),
        .target(name: "CTintypePNGFilters", path: "Sources/CLibraries/CTintypePNGFilters"),
        .systemLibrary(
            name: "CTintypeISAL",
            path: "Sources/CLibraries/CTintypeISAL",
            pkgConfig: "libisal",
            providers: [.apt(["libisal-dev"])]
        ),
        // Codes of GIF, written and read.
        .target(name: "CTintypeGIF", path: "Sources/CLibraries/CTintypeGIF"),
        .target(name: "CTintypeInflate", dependencies: ["CTintypeISAL"], path: "Sources/CLibraries/CTintypeInflate"),
        .target(
            name: "CTintypePNGDeflate",
            dependencies: ["CTintypeISAL"],
            path: "Sources/CLibraries/CTintypePNGDeflate"
        ),
        // Loops over pixels, compiled for several generations of processors.
        .target(name: "CTintypePixelKernels", path: "Sources/CLibraries/CTintypePixelKernels"),
        // libwebp decodes a large flat image in one call; this asks between its rows whether to go on.
        .target(
            name: "CTintypeWebPSteps",
            dependencies: ["CTintypeWebP"],
            path: "Sources/CLibraries/CTintypeWebPSteps"
        ),

        // The errors that all modules have in common.
        .target(name: "TintypeErrors"),

        // Floor 1
        .target(name: "TintypeImage", dependencies: ["TintypeErrors", "CTintypePixelKernels", "CTintypeShims"]),
        .target(name: "TintypeConcurrency", dependencies: ["TintypeErrors", "CTintypeShims"]),
        .target(name: "TintypeHTTP", dependencies: ["CTintypeCrypto"]),

        // Floor 2
        .target(
            name: "TintypeCoding",
            dependencies: [
                "TintypeErrors", "TintypeImage", "TintypeConcurrency", "CTintypeJPEG", "CTintypeTurboJPEG",
                "CTintypeDeflate", "CTintypeGIF",
                "CTintypeInflate",
                "CTintypePNGDeflate", "CTintypePNGFilters", "CTintypePixelKernels", "CTintypeWebP", "CTintypeWebPSteps",
                "CTintypeLCMS2",
            ]
        ),
        .target(
            name: "TintypeTransforms",
            dependencies: ["TintypeErrors", "TintypeImage", "CTintypeCrypto", "CTintypePixelKernels"]
        ),
        .target(
            name: "TintypeCaching",
            dependencies: [
                "TintypeErrors", "TintypeImage", "TintypeConcurrency", "TintypeHTTP", "CTintypeCrypto", "CTintypeShims",
                "CTintypeXXHash",
            ]
        ),
        .target(
            name: "TintypeDownloading",
            dependencies: [
                "TintypeErrors", "TintypeConcurrency", "TintypeHTTP", "CTintypeCurl", "CTintypeCrypto", "CTintypeShims",
                "CTintypeZlib", "CTintypeBrotli",
                "CTintypeZstd",
            ]
        ),

        // Floor 3
        .target(
            name: "TintypeRendering",
            dependencies: [
                "TintypeErrors", "TintypeImage", "TintypeConcurrency", "TintypeCoding", "TintypeTransforms",
            ]
        ),

        // Floor 4
        .target(
            name: "Tintype",
            dependencies: [
                "TintypeErrors", "TintypeImage", "TintypeConcurrency", "TintypeHTTP", "TintypeCoding",
                "TintypeTransforms",
                "TintypeCaching", "TintypeDownloading", "TintypeRendering",
            ]
        ),

        // Floor 5
        .target(name: "TintypePrometheus", dependencies: ["Tintype"]),
        .target(name: "TintypeTargets", dependencies: ["Tintype", "TintypeConcurrency"]),

        // Floor 6
        .executableTarget(
            name: "TintypeCommand",
            dependencies: ["Tintype", "TintypeConcurrency", "TintypeTargets", "CTintypeDeflate", "CTintypeShims"]
        ),

        // Benchmarks
        .target(name: "CTintypeAllocationCounter", path: "Benchmarks/CTintypeAllocationCounter"),
        .target(
            name: "CTintypeCodecLoops",
            dependencies: ["CTintypeLibJPEG", "CTintypeTurboJPEG", "CTintypeWebP"],
            path: "Benchmarks/CTintypeCodecLoops"
        ),
        .executableTarget(
            name: "TintypeBenchmarks",
            dependencies: [
                "Tintype", "TintypeCaching", "TintypeCoding", "TintypeConcurrency", "TintypeDownloading",
                "TintypeImage", "TintypeRendering", "TintypeTransforms",
                "CTintypeAllocationCounter", "CTintypeCodecLoops",
            ],
            path: "Benchmarks/TintypeBenchmarks"
        ),
        .executableTarget(
            name: "CodecTimes",
            dependencies: ["TintypeCoding", "TintypeImage", "TintypeTestSupport"],
            path: "Benchmarks/CodecTimes"
        ),

        // Long checks
        .executableTarget(
            name: "CacheTorture",
            dependencies: ["TintypeCaching", "TintypeTestSupport"],
            path: "Benchmarks/CacheTorture"
        ),
        .executableTarget(
            name: "DownloadTorture",
            dependencies: ["TintypeDownloading", "TintypeTestSupport", "CTintypeCurl", "CTintypeShims"],
            path: "Benchmarks/DownloadTorture"
        ),
        .executableTarget(
            name: "LoaderTorture",
            dependencies: ["Tintype", "TintypeConcurrency", "TintypeTargets", "TintypeTestSupport"],
            path: "Benchmarks/LoaderTorture"
        ),
        .executableTarget(
            name: "CommandTorture",
            dependencies: ["TintypeTestSupport", "TintypeCoding", "TintypeImage"],
            path: "Benchmarks/CommandTorture"
        ),
        .executableTarget(
            name: "HostileOrigins",
            dependencies: ["Tintype", "TintypeConcurrency", "TintypeTestSupport"],
            path: "Benchmarks/HostileOrigins",
            exclude: ["origin.py", "http2_table.py"]
        ),

        // Demonstration
        .executableTarget(
            name: "TintypeDemo",
            dependencies: ["Tintype", "TintypeTestSupport"],
            path: "Benchmarks/TintypeDemo"
        ),

        // Fuzzers
        .target(name: "TintypeFuzzSupport", dependencies: ["TintypeCoding", "TintypeImage"], path: "Fuzz/Support"),
        .executableTarget(
            name: "FuzzGIF",
            dependencies: ["TintypeFuzzSupport", "TintypeCoding", "TintypeImage"],
            path: "Fuzz/GIF"
        ),
        .executableTarget(
            name: "FuzzJPEG",
            dependencies: ["TintypeCoding", "TintypeImage"],
            path: "Fuzz/JPEG"
        ),
        .executableTarget(
            name: "FuzzJPEGEntropy",
            dependencies: ["TintypeCoding", "TintypeImage"],
            path: "Fuzz/JPEGEntropy"
        ),
        .executableTarget(
            name: "FuzzWebP",
            dependencies: ["TintypeFuzzSupport", "TintypeCoding", "TintypeImage"],
            path: "Fuzz/WebP"
        ),
        .executableTarget(
            name: "FuzzJPEGTransform",
            dependencies: ["TintypeConformanceSupport", "TintypeCoding", "TintypeImage"],
            path: "Fuzz/JPEGTransform"
        ),
        .executableTarget(name: "FuzzPNG", dependencies: ["TintypeCoding", "TintypeImage"], path: "Fuzz/PNG"),
        .executableTarget(
            name: "FuzzTransforms",
            dependencies: ["TintypeFuzzSupport", "TintypeTransforms", "TintypeImage"],
            path: "Fuzz/Transforms"
        ),
        .executableTarget(
            name: "SlowFiles",
            dependencies: [
                "Tintype", "TintypeCoding", "TintypeImage", "TintypeRendering", "TintypeTestSupport", "CTintypeDeflate",
                "CTintypeShims",
            ],
            path: "Fuzz/SlowFiles"
        ),

        // Tests
        .target(name: "CTintypeAllocationMeter", path: "Tests/CTintypeAllocationMeter"),
        .target(
            name: "CTintypeDescriptorLimit",
            path: "Tests/CTintypeDescriptorLimit",
            cSettings: [.define("_GNU_SOURCE")]
        ),
        // Decodes with CTintypeJPEG's entropy decoder in ways that its own functions don't take.
        .target(
            name: "CTintypeJPEGWays",
            dependencies: ["CTintypeJPEG", "CTintypeLibJPEG"],
            path: "Tests/CTintypeJPEGWays",
            cSettings: [.headerSearchPath("../../Sources/CLibraries/CTintypeJPEG")]
        ),
        .target(name: "CTintypeCoefficients", dependencies: ["CTintypeLibJPEG"], path: "Tests/CTintypeCoefficients"),
        .target(name: "CTintypeSignals", path: "Tests/CTintypeSignals"),
        .target(
            name: "TintypeTestSupport",
            dependencies: [
                "TintypeConcurrency", "TintypeImage", "CTintypeAllocationMeter", "CTintypeCrypto",
                "CTintypeDescriptorLimit", "CTintypeShims",
            ],
            path: "Tests/TintypeTestSupport",
            exclude: ["Fixtures"]
        ),
        // Apart from TintypeTestSupport, which programs without Swift Testing use as well.
        .target(
            name: "TintypeTestTraits",
            dependencies: ["TintypeTestSupport", "TintypeConcurrency"],
            path: "Tests/TintypeTestTraits"
        ),
        .target(
            name: "TintypeConformanceSupport",
            dependencies: [
                "TintypeCoding", "TintypeImage", "TintypeTestSupport", "CTintypeCoefficients", "CTintypeCrypto",
            ],
            path: "Tests/TintypeConformanceSupport"
        ),
        // Encoded images and scripted frames for the tests of coding and of rendering.
        .target(
            name: "TintypeCodingSamples",
            dependencies: ["TintypeCoding", "TintypeConcurrency", "TintypeImage", "TintypeTestSupport"],
            path: "Tests/TintypeCodingSamples"
        ),
        .testTarget(
            name: "ConformanceTests",
            dependencies: ["TintypeConformanceSupport", "TintypeCoding", "TintypeImage", "TintypeTestSupport"]
        ),
        .executableTarget(
            name: "TintypeConformance",
            dependencies: ["TintypeConformanceSupport"],
            path: "Benchmarks/TintypeConformance"
        ),
        .testTarget(name: "TintypeImageTests", dependencies: ["TintypeImage", "TintypeTestSupport", "CTintypeShims"]),
        .testTarget(name: "TintypeConcurrencyTests", dependencies: ["TintypeConcurrency", "TintypeTestSupport"]),
        .testTarget(name: "TintypeHTTPTests", dependencies: ["TintypeHTTP"]),
        .testTarget(
            name: "TintypeCodingTests",
            dependencies: [
                "TintypeCoding", "TintypeConcurrency", "TintypeImage", "TintypeTestSupport", "TintypeCodingSamples",
                "TintypeConformanceSupport",
                "CTintypeCrypto", "CTintypeJPEG", "CTintypeJPEGWays", "CTintypeSPNG", "CTintypeZlib",
            ],
            exclude: ["Crashes"]
        ),
        .testTarget(
            name: "TintypeRenderingTests",
            dependencies: [
                "TintypeRendering", "TintypeCoding", "TintypeConcurrency", "TintypeImage", "TintypeTransforms",
                "TintypeTestSupport", "TintypeCodingSamples", "TintypeConformanceSupport",
            ]
        ),
        .testTarget(
            name: "TintypeTransformsTests",
            dependencies: ["TintypeTransforms", "TintypeCoding", "TintypeImage", "TintypeTestSupport"]
        ),
        .testTarget(
            name: "TintypeCachingTests",
            dependencies: [
                "TintypeCaching", "TintypeImage", "TintypeConcurrency", "TintypeHTTP", "TintypeTestSupport",
                "CacheTorture",
                "CTintypeShims", "CTintypeSignals",
            ]
        ),
        // Runs in a network namespace, whose threads must all be in it: so it is a program of its own.
        .executableTarget(
            name: "NetworkPolicyProbe",
            dependencies: ["TintypeDownloading", "TintypeConcurrency", "TintypeTestSupport"],
            path: "Tests/NetworkPolicyProbe"
        ),
        .testTarget(
            name: "TintypeDownloadingTests",
            dependencies: [
                "TintypeDownloading", "TintypeConcurrency", "TintypeHTTP", "TintypeTestSupport", "CTintypeCurl",
                "NetworkPolicyProbe",
            ]
        ),
        .testTarget(
            name: "TintypeTests",
            dependencies: [
                "Tintype", "TintypeConcurrency", "TintypeHTTP", "TintypePrometheus", "TintypeTargets",
                "TintypeTestSupport",
                "LoaderTorture",
            ]
        ),
        // Server frameworks have names for HTTP as well: what users write must compile beside theirs.
        .target(name: "TintypeFrameworkNames", path: "Tests/TintypeFrameworkNames"),
        .testTarget(
            name: "TintypeImportTests",
            dependencies: ["Tintype", "TintypePrometheus", "TintypeTargets", "TintypeFrameworkNames"],
            packageAccess: false
        ),
        .testTarget(
            name: "TintypeCommandTests",
            dependencies: [
                "TintypeCommand", "Tintype", "TintypeConcurrency", "TintypeImage", "TintypeTestSupport", "CTintypeZlib",
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)

for target in package.targets where target.type == .test {
    target.dependencies.append("TintypeTestTraits")
}

// One policy for every Swift target, written once.
let cTargets = [
    "CTintypeGIF", "CTintypeInflate", "CTintypeJPEG", "CTintypePixelKernels", "CTintypeShims", "CTintypePNGDeflate",
    "CTintypePNGFilters", "CTintypeWebPSteps",
    "CTintypeAllocationCounter", "CTintypeAllocationMeter", "CTintypeCodecLoops",
    "CTintypeCoefficients", "CTintypeDescriptorLimit", "CTintypeJPEGWays", "CTintypeSignals",
]
for target in package.targets where target.type != .system && !cTargets.contains(target.name) {
    target.swiftSettings =
        (target.swiftSettings ?? []) + [
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("MemberImportVisibility"),
            .enableUpcomingFeature("InternalImportsByDefault"),
            .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
            .treatAllWarnings(as: .error),
        ]
    // The thread sanitizer does not see the standard library's `Mutex`; see `Locked`.
    if Context.environment["SANITIZE_THREAD"] != nil {
        target.swiftSettings?.append(.define("SANITIZE_THREAD"))
    }
}
