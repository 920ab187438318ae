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
            name: "CCurl",
            path: "Sources/CLibraries/CCurl",
            pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]
        ),
        .systemLibrary(
            name: "CLibJPEG",
            path: "Sources/CLibraries/CLibJPEG",
            pkgConfig: "libjpeg",
            providers: [.apt(["libjpeg-dev"])]
        ),
        .systemLibrary(
            name: "CTurboJPEG",
            path: "Sources/CLibraries/CTurboJPEG",
            pkgConfig: "libturbojpeg",
            providers: [.apt(["libturbojpeg0-dev"])]
        ),
        .systemLibrary(
            name: "CSPNG",
            path: "Sources/CLibraries/CSPNG",
            pkgConfig: "spng",
            providers: [.apt(["libspng-dev"])]
        ),
        .systemLibrary(
            name: "CDeflate",
            path: "Sources/CLibraries/CDeflate",
            pkgConfig: "libdeflate",
            providers: [.apt(["libdeflate-dev"])]
        ),
        .systemLibrary(
            name: "CZlib",
            path: "Sources/CLibraries/CZlib",
            pkgConfig: "zlib",
            providers: [.apt(["zlib1g-dev"])]
        ),
        .systemLibrary(
            name: "CBrotli",
            path: "Sources/CLibraries/CBrotli",
            pkgConfig: "libbrotlidec",
            providers: [.apt(["libbrotli-dev"])]
        ),
        .systemLibrary(
            name: "CZstd",
            path: "Sources/CLibraries/CZstd",
            pkgConfig: "libzstd",
            providers: [.apt(["libzstd-dev"])]
        ),
        .systemLibrary(
            name: "CWebP",
            path: "Sources/CLibraries/CWebP",
            pkgConfig: "libwebp",
            providers: [.apt(["libwebp-dev"])]
        ),
        .systemLibrary(
            name: "CCrypto",
            path: "Sources/CLibraries/CCrypto",
            pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"])]
        ),
        .systemLibrary(
            name: "CXXHash",
            path: "Sources/CLibraries/CXXHash",
            pkgConfig: "libxxhash",
            providers: [.apt(["libxxhash-dev"])]
        ),
        .systemLibrary(
            name: "CLCMS2",
            path: "Sources/CLibraries/CLCMS2",
            pkgConfig: "lcms2",
            providers: [.apt(["liblcms2-dev"])]
        ),
        // libjpeg reports errors by longjmp; this catches them before they reach Swift.
        .target(
            name: "CJPEG",
            dependencies: ["CLibJPEG"],
            path: "Sources/CLibraries/CJPEG",
            cSettings: [.define("_GNU_SOURCE")]
        ),
        .target(name: "CShims", path: "Sources/CLibraries/CShims", cSettings: [.define("_GNU_SOURCE")]),
        .target(name: "CPNGFilters", path: "Sources/CLibraries/CPNGFilters"),
        .systemLibrary(
            name: "CISAL",
            path: "Sources/CLibraries/CISAL",
            pkgConfig: "libisal",
            providers: [.apt(["libisal-dev"])]
        ),
        // Codes of GIF, written and read.
        .target(name: "CGIF", path: "Sources/CLibraries/CGIF"),
        .target(name: "CInflate", dependencies: ["CISAL"], path: "Sources/CLibraries/CInflate"),
        .target(name: "CPNGDeflate", dependencies: ["CISAL"], path: "Sources/CLibraries/CPNGDeflate"),
        // Loops over pixels, compiled for several generations of processors.
        .target(name: "CPixelKernels", path: "Sources/CLibraries/CPixelKernels"),
        // libwebp decodes a large flat picture in one call; this asks between its rows whether to go on.
        .target(name: "CWebPSteps", dependencies: ["CWebP"], path: "Sources/CLibraries/CWebPSteps"),

        // The errors that all modules have in common.
        .target(name: "TintypeErrors"),

        // Floor 1
        .target(name: "TintypeImage", dependencies: ["TintypeErrors", "CPixelKernels", "CShims"]),
        .target(name: "TintypeConcurrency", dependencies: ["TintypeErrors", "CShims"]),
        .target(name: "TintypeHTTP", dependencies: ["CCrypto"]),

        // Floor 2
        .target(
            name: "TintypeCoding",
            dependencies: [
                "TintypeErrors", "TintypeImage", "TintypeConcurrency", "CJPEG", "CTurboJPEG", "CDeflate", "CGIF",
                "CInflate",
                "CPNGDeflate", "CPNGFilters", "CPixelKernels", "CWebP", "CWebPSteps", "CLCMS2",
            ]
        ),
        .target(
            name: "TintypeTransforms",
            dependencies: ["TintypeErrors", "TintypeImage", "CCrypto", "CPixelKernels"]
        ),
        .target(
            name: "TintypeCaching",
            dependencies: [
                "TintypeErrors", "TintypeImage", "TintypeConcurrency", "TintypeHTTP", "CCrypto", "CShims", "CXXHash",
            ]
        ),
        .target(
            name: "TintypeDownloading",
            dependencies: [
                "TintypeErrors", "TintypeConcurrency", "TintypeHTTP", "CCurl", "CCrypto", "CShims", "CZlib", "CBrotli",
                "CZstd",
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
            dependencies: ["Tintype", "TintypeConcurrency", "TintypeTargets", "CDeflate", "CShims"]
        ),

        // Benchmarks
        .target(name: "CAllocationCounter", path: "Benchmarks/CAllocationCounter"),
        .target(
            name: "CCodecLoops",
            dependencies: ["CLibJPEG", "CTurboJPEG", "CWebP"],
            path: "Benchmarks/CCodecLoops"
        ),
        .executableTarget(
            name: "TintypeBenchmarks",
            dependencies: [
                "Tintype", "TintypeCaching", "TintypeCoding", "TintypeConcurrency", "TintypeDownloading",
                "TintypeImage", "TintypeRendering", "TintypeTransforms",
                "CAllocationCounter", "CCodecLoops",
            ],
            path: "Benchmarks/TintypeBenchmarks"
        ),
        .executableTarget(
            name: "CodecTimes",
            dependencies: ["TintypeCoding", "TintypeImage", "TestSupport"],
            path: "Benchmarks/CodecTimes"
        ),

        // Long checks
        .executableTarget(
            name: "CacheTorture",
            dependencies: ["TintypeCaching", "TestSupport"],
            path: "Benchmarks/CacheTorture"
        ),
        .executableTarget(
            name: "DownloadTorture",
            dependencies: ["TintypeDownloading", "TestSupport", "CCurl", "CShims"],
            path: "Benchmarks/DownloadTorture"
        ),
        .executableTarget(
            name: "LoaderTorture",
            dependencies: ["Tintype", "TintypeConcurrency", "TintypeTargets", "TestSupport"],
            path: "Benchmarks/LoaderTorture"
        ),
        .executableTarget(
            name: "CommandTorture",
            dependencies: ["TestSupport", "TintypeCoding", "TintypeImage"],
            path: "Benchmarks/CommandTorture"
        ),
        .executableTarget(
            name: "HostileOrigins",
            dependencies: ["Tintype", "TintypeConcurrency", "TestSupport"],
            path: "Benchmarks/HostileOrigins",
            exclude: ["origin.py", "http2_table.py"]
        ),

        // Demonstration
        .executableTarget(
            name: "TintypeDemo",
            dependencies: ["Tintype", "TestSupport"],
            path: "Benchmarks/TintypeDemo"
        ),

        // Fuzzers
        .target(name: "FuzzSupport", dependencies: ["TintypeCoding", "TintypeImage"], path: "Fuzz/Support"),
        .executableTarget(
            name: "FuzzGIF",
            dependencies: ["FuzzSupport", "TintypeCoding", "TintypeImage"],
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
            dependencies: ["FuzzSupport", "TintypeCoding", "TintypeImage"],
            path: "Fuzz/WebP"
        ),
        .executableTarget(
            name: "FuzzJPEGTransform",
            dependencies: ["Conformance", "TintypeCoding", "TintypeImage"],
            path: "Fuzz/JPEGTransform"
        ),
        .executableTarget(name: "FuzzPNG", dependencies: ["TintypeCoding", "TintypeImage"], path: "Fuzz/PNG"),
        .executableTarget(
            name: "FuzzTransforms",
            dependencies: ["FuzzSupport", "TintypeTransforms", "TintypeImage"],
            path: "Fuzz/Transforms"
        ),
        .executableTarget(
            name: "SlowFiles",
            dependencies: [
                "Tintype", "TintypeCoding", "TintypeImage", "TintypeRendering", "TestSupport", "CDeflate", "CShims",
            ],
            path: "Fuzz/SlowFiles"
        ),

        // Tests
        .target(name: "CAllocationMeter", path: "Tests/CAllocationMeter"),
        .target(
            name: "CDescriptorLimit",
            path: "Tests/CDescriptorLimit",
            cSettings: [.define("_GNU_SOURCE")]
        ),
        // Decodes with CJPEG's entropy decoder in ways that its own functions don't take.
        .target(
            name: "CJPEGWays",
            dependencies: ["CJPEG", "CLibJPEG"],
            path: "Tests/CJPEGWays",
            cSettings: [.headerSearchPath("../../Sources/CLibraries/CJPEG")]
        ),
        .target(name: "CCoefficients", dependencies: ["CLibJPEG"], path: "Tests/CCoefficients"),
        .target(name: "CSignals", path: "Tests/CSignals"),
        .target(
            name: "TestSupport",
            dependencies: [
                "TintypeConcurrency", "TintypeImage", "CAllocationMeter", "CCrypto", "CDescriptorLimit", "CShims",
            ],
            path: "Tests/TestSupport",
            exclude: ["Fixtures"]
        ),
        // Apart from TestSupport, which programs without Swift Testing use as well.
        .target(name: "TestTraits", dependencies: ["TestSupport", "TintypeConcurrency"], path: "Tests/TestTraits"),
        .target(
            name: "Conformance",
            dependencies: ["TintypeCoding", "TintypeImage", "TestSupport", "CCoefficients", "CCrypto"],
            path: "Tests/Conformance"
        ),
        // Encoded images and scripted frames for the tests of coding and of rendering.
        .target(
            name: "CodingSamples",
            dependencies: ["TintypeCoding", "TintypeConcurrency", "TintypeImage", "TestSupport"],
            path: "Tests/CodingSamples"
        ),
        .testTarget(
            name: "ConformanceTests",
            dependencies: ["Conformance", "TintypeCoding", "TintypeImage", "TestSupport"]
        ),
        .executableTarget(
            name: "TintypeConformance",
            dependencies: ["Conformance"],
            path: "Benchmarks/TintypeConformance"
        ),
        .testTarget(name: "TintypeImageTests", dependencies: ["TintypeImage", "TestSupport", "CShims"]),
        .testTarget(name: "TintypeConcurrencyTests", dependencies: ["TintypeConcurrency", "TestSupport"]),
        .testTarget(name: "TintypeHTTPTests", dependencies: ["TintypeHTTP"]),
        .testTarget(
            name: "TintypeCodingTests",
            dependencies: [
                "TintypeCoding", "TintypeConcurrency", "TintypeImage", "TestSupport", "CodingSamples", "Conformance",
                "CCrypto", "CJPEG", "CJPEGWays", "CSPNG", "CZlib",
            ],
            exclude: ["Crashes"]
        ),
        .testTarget(
            name: "TintypeRenderingTests",
            dependencies: [
                "TintypeRendering", "TintypeCoding", "TintypeConcurrency", "TintypeImage", "TintypeTransforms",
                "TestSupport", "CodingSamples", "Conformance",
            ]
        ),
        .testTarget(
            name: "TintypeTransformsTests",
            dependencies: ["TintypeTransforms", "TintypeCoding", "TintypeImage", "TestSupport"]
        ),
        .testTarget(
            name: "TintypeCachingTests",
            dependencies: [
                "TintypeCaching", "TintypeImage", "TintypeConcurrency", "TintypeHTTP", "TestSupport", "CacheTorture",
                "CShims", "CSignals",
            ]
        ),
        // Runs in a network namespace, whose threads must all be in it: so it is a program of its own.
        .executableTarget(
            name: "NetworkPolicyProbe",
            dependencies: ["TintypeDownloading", "TintypeConcurrency", "TestSupport"],
            path: "Tests/NetworkPolicyProbe"
        ),
        .testTarget(
            name: "TintypeDownloadingTests",
            dependencies: [
                "TintypeDownloading", "TintypeConcurrency", "TintypeHTTP", "TestSupport", "CCurl", "NetworkPolicyProbe",
            ]
        ),
        .testTarget(
            name: "TintypeTests",
            dependencies: [
                "Tintype", "TintypeConcurrency", "TintypeHTTP", "TintypePrometheus", "TintypeTargets", "TestSupport",
                "LoaderTorture",
            ]
        ),
        // Server frameworks have names for HTTP as well: what users write must compile beside theirs.
        .target(name: "FrameworkNames", path: "Tests/FrameworkNames"),
        .testTarget(
            name: "TintypeImportTests",
            dependencies: ["Tintype", "TintypePrometheus", "TintypeTargets", "FrameworkNames"],
            packageAccess: false
        ),
        .testTarget(
            name: "TintypeCommandTests",
            dependencies: [
                "TintypeCommand", "Tintype", "TintypeConcurrency", "TintypeImage", "TestSupport", "CZlib",
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)

for target in package.targets where target.type == .test {
    target.dependencies.append("TestTraits")
}

// One policy for every Swift target, written once.
let cTargets = [
    "CGIF", "CInflate", "CJPEG", "CPixelKernels", "CShims", "CPNGDeflate", "CPNGFilters", "CWebPSteps",
    "CAllocationCounter", "CAllocationMeter", "CCodecLoops",
    "CCoefficients", "CDescriptorLimit", "CJPEGWays", "CSignals",
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
