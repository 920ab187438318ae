// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// The library, the command and their tests. The packages in Benchmarks, Checks, Examples and Fuzz depend on this one.

/// The thread sanitizer does not see the standard library's `Mutex`; see `Locked`.
let sanitizing: [SwiftSetting] = Context.environment["SANITIZE_THREAD"] == nil ? [] : [.define("SANITIZE_THREAD")]

/// The optional C libraries, each of which has a trait.
///
/// The trait `Full` stands for all of them. SwiftPM passes enabled traits to the compiler in an order that differs from
/// plan to plan, so with several default traits a new file would compile everything anew.
let libraries = ["Brotli", "ISAL", "LittleCMS", "WebP", "Zstandard"]

/// One policy for every Swift target.
let policy: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .treatAllWarnings(as: .error),
    ] + libraries.map { .define($0, .when(traits: [$0, "Full"])) } + sanitizing

/// A C library of the system, with its Debian package.
func system(_ name: String, pkgConfig: String, apt: String, in folder: String = "Sources/CLibraries") -> Target {
    .systemLibrary(name: name, path: "\(folder)/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

/// A dependency on an optional library.
func optional(_ name: String, trait: String) -> Target.Dependency {
    .target(name: name, condition: .when(traits: [trait, "Full"]))
}

/// C code of our own.
///
/// With `trait`, an enabled trait defines a macro with that name.
func code(
    _ name: String,
    _ dependencies: [Target.Dependency] = [],
    in folder: String = "Sources/CLibraries",
    isGNU: Bool = false,
    headers: [String] = [],
    trait: String? = nil
) -> Target {
    let settings: [CSetting] = headers.map { .headerSearchPath($0) } + (isGNU ? [.define("_GNU_SOURCE")] : [])
    let traits: [CSetting] = trait.map { [.define($0, .when(traits: [$0, "Full"]))] } ?? []
    return .target(name: name, dependencies: dependencies, path: "\(folder)/\(name)", cSettings: settings + traits)
}

/// A Swift module.
func module(
    _ name: String,
    _ dependencies: [Target.Dependency] = [],
    in folder: String = "Sources",
    exclude: [String] = []
) -> Target {
    .target(
        name: name,
        dependencies: dependencies,
        path: "\(folder)/\(name)",
        exclude: exclude,
        swiftSettings: policy
    )
}

func program(_ name: String, _ dependencies: [Target.Dependency], in folder: String = "Sources") -> Target {
    .executableTarget(name: name, dependencies: dependencies, path: "\(folder)/\(name)", swiftSettings: policy)
}

func tests(
    _ name: String,
    _ dependencies: [Target.Dependency],
    exclude: [String] = [],
    packageAccess: Bool = true
) -> Target {
    .testTarget(
        name: name,
        dependencies: dependencies + ["TintypeTestTraits"],
        exclude: exclude,
        packageAccess: packageAccess,
        swiftSettings: policy
    )
}

let package = Package(
    name: "tintype",
    products: [
        .library(name: "Tintype", targets: ["Tintype"]),
        .library(name: "TintypeCluster", targets: ["TintypeCluster", "TintypeRedis"]),
        .library(name: "TintypePrometheus", targets: ["TintypePrometheus"]),
        .library(name: "TintypeServer", targets: ["TintypeServer"]),
        .library(name: "TintypeTargets", targets: ["TintypeTargets"]),
        .executable(name: "tintype", targets: ["TintypeCommand"]),

        // Parts of Tintype, for programs that load no images.
        .library(name: "TintypeCoding", targets: ["TintypeCoding", "TintypeImage", "TintypeTransforms"]),
        .library(name: "TintypeCaching", targets: ["TintypeCaching"]),
        .library(name: "TintypeDownloading", targets: ["TintypeDownloading"]),

        // Only for the packages in Benchmarks, Checks, Examples and Fuzz: these modules change without notice.
        .library(name: "TintypeHTTP", targets: ["TintypeHTTP"]),
        .library(name: "TintypeImgproxy", targets: ["TintypeImgproxy"]),
        .library(name: "TintypeTestSupport", targets: ["TintypeTestSupport"]),
        .library(name: "TintypeConformanceSupport", targets: ["TintypeConformanceSupport"]),
        .library(name: "TintypeOrderStorm", targets: ["TintypeOrderStorm"]),
    ],
    // Each needs a C library. Docs/guide.md says what a build without it lacks.
    traits: [
        .default(enabledTraits: ["Full"]),
        .trait(name: "Full", description: "All of the other traits."),
        .trait(name: "Brotli", description: "Decodes bodies with the content coding br, with libbrotli."),
        .trait(name: "ISAL", description: "Inflates PNGs, and writes them at level 1, faster than zlib, with ISA-L."),
        .trait(name: "LittleCMS", description: "Converts embedded colour profiles to sRGB, with Little CMS."),
        .trait(name: "WebP", description: "Reads and writes WebP, with libwebp."),
        .trait(name: "Zstandard", description: "Decodes bodies with the content coding zstd, with libzstd."),
    ],
    targets: [
        // Ground: C libraries, and C parts beside them.
        system("CTintypeBrotli", pkgConfig: "libbrotlidec", apt: "libbrotli-dev"),
        system("CTintypeCrypto", pkgConfig: "libcrypto", apt: "libssl-dev"),
        system("CTintypeCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
        system("CTintypeDeflate", pkgConfig: "libdeflate", apt: "libdeflate-dev"),
        // Without pkg-config, whose flags for hiredis SwiftPM refuses; the header is in the usual folder.
        .systemLibrary(
            name: "CTintypeHiredis",
            path: "Sources/CLibraries/CTintypeHiredis",
            providers: [.apt(["libhiredis-dev"])]
        ),
        system("CTintypeISAL", pkgConfig: "libisal", apt: "libisal-dev"),
        system("CTintypeLCMS2", pkgConfig: "lcms2", apt: "liblcms2-dev"),
        system("CTintypeLibJPEG", pkgConfig: "libjpeg", apt: "libjpeg-dev"),
        system("CTintypeTurboJPEG", pkgConfig: "libturbojpeg", apt: "libturbojpeg0-dev"),
        system("CTintypeWebP", pkgConfig: "libwebp", apt: "libwebp-dev"),
        system("CTintypeXXHash", pkgConfig: "libxxhash", apt: "libxxhash-dev"),
        system("CTintypeZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
        system("CTintypeZstd", pkgConfig: "libzstd", apt: "libzstd-dev"),
        code("CTintypeGIF"),
        code("CTintypeInflate", [optional("CTintypeISAL", trait: "ISAL"), "CTintypeZlib"], trait: "ISAL"),
        // libjpeg reports errors by longjmp; this catches them before they reach Swift.
        code("CTintypeJPEG", ["CTintypeLibJPEG"], isGNU: true),
        code("CTintypePNGDeflate", [optional("CTintypeISAL", trait: "ISAL")], trait: "ISAL"),
        code("CTintypePNGFilters"),
        // Loops over pixels, compiled for several generations of processors.
        code("CTintypePixelKernels"),
        code("CTintypeShims", isGNU: true),
        code("CTintypeVP8L"),
        // libwebp decodes a large flat image in one call; this asks between its rows whether to go on.
        code("CTintypeWebPSteps", [optional("CTintypeWebP", trait: "WebP")], trait: "WebP"),

        // The errors that all modules have in common.
        module("TintypeErrors"),

        // Floor 1
        module("TintypeImage", ["TintypeErrors", "CTintypePixelKernels", "CTintypeShims"]),
        module("TintypeConcurrency", ["TintypeErrors", "CTintypeShims"]),
        module("TintypeHTTP", ["CTintypeCrypto"]),

        // Floor 2
        module("TintypeImgproxy", ["TintypeImage", "CTintypeCrypto"]),
        module(
            "TintypeCoding",
            [
                "TintypeErrors", "TintypeImage", "TintypeConcurrency", "CTintypeDeflate", "CTintypeGIF",
                "CTintypeInflate", "CTintypeJPEG", "CTintypePNGDeflate", "CTintypePNGFilters", "CTintypePixelKernels",
                "CTintypeTurboJPEG", optional("CTintypeLCMS2", trait: "LittleCMS"),
                optional("CTintypeVP8L", trait: "WebP"), optional("CTintypeWebP", trait: "WebP"),
                optional("CTintypeWebPSteps", trait: "WebP"),
            ]
        ),
        module("TintypeTransforms", ["TintypeErrors", "TintypeImage", "CTintypeCrypto", "CTintypePixelKernels"]),
        module(
            "TintypeCaching",
            [
                "TintypeErrors", "TintypeImage", "TintypeConcurrency", "TintypeHTTP", "CTintypeCrypto", "CTintypeShims",
                "CTintypeXXHash",
            ]
        ),
        module(
            "TintypeDownloading",
            [
                "TintypeErrors", "TintypeConcurrency", "TintypeHTTP", "CTintypeCrypto", "CTintypeCurl",
                "CTintypeShims", "CTintypeZlib", optional("CTintypeBrotli", trait: "Brotli"),
                optional("CTintypeZstd", trait: "Zstandard"),
            ]
        ),
        module("TintypeRedis", ["TintypeConcurrency", "CTintypeHiredis", "CTintypeShims"]),

        // Floor 3
        module(
            "TintypeRendering",
            ["TintypeErrors", "TintypeImage", "TintypeConcurrency", "TintypeCoding", "TintypeTransforms"]
        ),
        module("TintypeFlights", ["TintypeCaching", "TintypeDownloading"]),
        module(
            "TintypeRequests",
            [
                "TintypeErrors", "TintypeImage", "TintypeConcurrency", "TintypeHTTP", "TintypeCoding",
                "TintypeTransforms", "TintypeCaching", "TintypeDownloading",
            ]
        ),

        // Floor 4
        module(
            "Tintype",
            [
                "TintypeErrors", "TintypeImage", "TintypeConcurrency", "TintypeHTTP", "TintypeCoding",
                "TintypeTransforms", "TintypeCaching", "TintypeDownloading", "TintypeRendering", "TintypeFlights",
                "TintypeRequests",
            ]
        ),

        // Floor 5
        module("TintypeCluster", ["Tintype", "TintypeConcurrency", "TintypeHTTP", "TintypeRedis"]),
        module("TintypePrometheus", ["Tintype"]),
        module("TintypeTargets", ["Tintype", "TintypeConcurrency"]),

        // Floor 6
        module(
            "TintypeServer",
            [
                "Tintype", "TintypeCluster", "TintypeConcurrency", "TintypeHTTP", "TintypeImgproxy",
                "TintypePrometheus", "TintypeRedis", "CTintypeCrypto",
                "CTintypeShims",
            ],
            exclude: ["Page/Page.html"]
        ),

        // Floor 7
        program(
            "TintypeCommand",
            [
                "Tintype", "TintypeCluster", "TintypeConcurrency", "TintypeRedis", "TintypeServer", "TintypeTargets",
                "CTintypeDeflate", "CTintypeShims",
            ]
        ),

        // What the tests share
        code("CTintypeAllocationMeter", in: "Tests"),
        code("CTintypeCoefficients", ["CTintypeLibJPEG"], in: "Tests"),
        code("CTintypeDescriptorLimit", in: "Tests", isGNU: true),
        // Decodes with CTintypeJPEG's entropy decoder in ways that its own functions do not take.
        code(
            "CTintypeJPEGWays",
            ["CTintypeJPEG", "CTintypeLibJPEG"],
            in: "Tests",
            headers: ["../../Sources/CLibraries/CTintypeJPEG"]
        ),
        system("CTintypeSPNG", pkgConfig: "spng", apt: "libspng-dev", in: "Tests"),
        code("CTintypeSignals", in: "Tests"),
        module(
            "TintypeTestSupport",
            [
                "TintypeConcurrency", "TintypeImage", "CTintypeAllocationMeter", "CTintypeCrypto",
                "CTintypeDescriptorLimit", "CTintypeShims",
            ],
            in: "Tests",
            exclude: ["Fixtures", "s3_origin.py"]
        ),
        // Apart from TintypeTestSupport, which programs without Swift Testing use as well.
        module("TintypeTestTraits", ["TintypeTestSupport", "TintypeConcurrency"], in: "Tests"),
        // Encoded images and scripted frames for the tests of coding and of rendering.
        module(
            "TintypeCodingSamples",
            ["TintypeCoding", "TintypeConcurrency", "TintypeImage", "TintypeTestSupport"],
            in: "Tests"
        ),
        module(
            "TintypeConformanceSupport",
            ["TintypeCoding", "TintypeImage", "TintypeTestSupport", "CTintypeCoefficients", "CTintypeCrypto"],
            in: "Tests"
        ),
        // Server frameworks have names for HTTP as well: what users write must compile beside theirs.
        module("TintypeFrameworkNames", in: "Tests"),
        // Storms of reloads: a few in the tests, and minutes of them in `make torture`.
        module("TintypeOrderStorm", ["Tintype", "TintypeConcurrency", "TintypeTestSupport"], in: "Tests"),
        // The tests start its processes, to kill and to stop them. `make torture` runs it for longer.
        program("CacheTorture", ["TintypeCaching", "TintypeTestSupport"], in: "Tests"),
        // Runs in a network namespace, whose threads must all be in it: so it is a program of its own.
        program("NetworkPolicyProbe", ["TintypeDownloading", "TintypeConcurrency", "TintypeTestSupport"], in: "Tests"),

        // Tests
        tests(
            "ConformanceTests",
            ["TintypeConformanceSupport", "TintypeCoding", "TintypeImage", "TintypeTestSupport"]
        ),
        tests("TintypeImageTests", ["TintypeImage", "TintypeTestSupport", "CTintypeShims"]),
        tests("TintypeConcurrencyTests", ["TintypeConcurrency", "TintypeTestSupport"]),
        tests("TintypeHTTPTests", ["TintypeHTTP", "TintypeTestSupport"]),
        tests(
            "TintypeCodingTests",
            [
                "TintypeCoding", "TintypeConcurrency", "TintypeImage", "TintypeTestSupport", "TintypeCodingSamples",
                "TintypeConformanceSupport", "CTintypeCrypto", "CTintypeJPEG", "CTintypeJPEGWays", "CTintypeSPNG",
                "CTintypeZlib",
            ],
            exclude: ["Crashes"]
        ),
        tests(
            "TintypeRenderingTests",
            [
                "TintypeRendering", "TintypeCoding", "TintypeConcurrency", "TintypeImage", "TintypeTransforms",
                "TintypeTestSupport", "TintypeCodingSamples", "TintypeConformanceSupport",
            ]
        ),
        tests(
            "TintypeFlightsTests",
            ["TintypeFlights", "TintypeCaching", "TintypeDownloading", "TintypeTestSupport"]
        ),
        tests(
            "TintypeRequestsTests",
            [
                "TintypeRequests", "TintypeCaching", "TintypeCoding", "TintypeDownloading", "TintypeErrors",
                "TintypeHTTP", "TintypeTestSupport", "TintypeTransforms",
            ]
        ),
        tests("TintypeTransformsTests", ["TintypeTransforms", "TintypeCoding", "TintypeImage", "TintypeTestSupport"]),
        tests(
            "TintypeCachingTests",
            [
                "TintypeCaching", "TintypeImage", "TintypeConcurrency", "TintypeHTTP", "TintypeTestSupport",
                "CacheTorture", "CTintypeShims", "CTintypeSignals",
            ]
        ),
        tests(
            "TintypeDownloadingTests",
            [
                "TintypeDownloading", "TintypeConcurrency", "TintypeHTTP", "TintypeTestSupport", "NetworkPolicyProbe",
                "CTintypeCurl",
            ]
        ),
        tests(
            "TintypeTests",
            [
                "Tintype", "TintypeConcurrency", "TintypeFlights", "TintypeHTTP", "TintypePrometheus",
                "TintypeRequests", "TintypeTargets", "TintypeTestSupport", "TintypeOrderStorm",
            ]
        ),
        tests(
            "TintypeClusterTests",
            ["TintypeCluster", "Tintype", "TintypeConcurrency", "TintypeRedis", "TintypeTestSupport"]
        ),
        tests("TintypeRedisTests", ["TintypeRedis", "TintypeConcurrency", "TintypeTestSupport", "CTintypeHiredis"]),
        tests("TintypeImgproxyTests", ["TintypeImgproxy", "TintypeImage", "TintypeTestSupport"]),
        tests(
            "TintypeServerTests",
            [
                "TintypeServer", "Tintype", "TintypeCluster", "TintypeCodingSamples", "TintypeConcurrency",
                "TintypeDownloading", "TintypeHTTP", "TintypeImgproxy", "TintypeTestSupport",
            ],
            exclude: ["Page/page_test.py", "Server/client_urls.py"]
        ),
        tests(
            "TintypeImportTests",
            ["Tintype", "TintypePrometheus", "TintypeTargets", "TintypeFrameworkNames"],
            packageAccess: false
        ),
        tests(
            "TintypeCommandTests",
            [
                "TintypeCommand", "Tintype", "TintypeCluster", "TintypeConcurrency", "TintypeImage",
                "TintypeTestSupport", "CTintypeZlib",
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)

// `make smallest` and `make smoke` name the test targets that they need.
if let names = Context.environment["TINTYPE_TESTS"]?.split(separator: ",") {
    package.targets.removeAll { target in target.type == .test && !names.contains { $0 == target.name } }
}
