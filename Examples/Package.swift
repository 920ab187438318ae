// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// Programs that show how Tintype is used. They see its public declarations only.

/// The root's policy for Swift targets.
let policy: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "tintype-examples",
    dependencies: [.package(name: "tintype", path: "..")],
    targets: [
        .systemLibrary(
            name: "CHiredis",
            path: "CHiredis",
            pkgConfig: "hiredis",
            providers: [.apt(["libhiredis-dev"])]
        ),
        // A byte tier that several processes share, a program that uses it, and its tests with a real server.
        .target(
            name: "RedisTier",
            dependencies: ["CHiredis", .product(name: "Tintype", package: "tintype")],
            path: "RedisTier",
            swiftSettings: policy
        ),
        .executableTarget(
            name: "RedisTierProgram",
            dependencies: ["RedisTier", .product(name: "Tintype", package: "tintype")],
            path: "RedisTierProgram",
            swiftSettings: policy
        ),
        .testTarget(
            name: "RedisTierTests",
            dependencies: [
                "RedisTier", "RedisTierProgram", .product(name: "Tintype", package: "tintype"),
                .product(name: "TintypeTestSupport", package: "tintype"),
            ],
            path: "Tests/RedisTierTests",
            swiftSettings: policy
        ),
        // A coder, a fetcher, a transformer and an observer of a program's own.
        .target(
            name: "Samples",
            dependencies: [.product(name: "Tintype", package: "tintype")],
            path: "Samples",
            swiftSettings: policy
        ),
        .testTarget(
            name: "SamplesTests",
            dependencies: [
                "Samples", .product(name: "Tintype", package: "tintype"),
                .product(name: "TintypeTestSupport", package: "tintype"),
            ],
            path: "Tests/SamplesTests",
            swiftSettings: policy
        ),
        .executableTarget(
            name: "TintypeDemo",
            dependencies: [
                .product(name: "Tintype", package: "tintype"),
                .product(name: "TintypeTestSupport", package: "tintype"),
            ],
            path: "TintypeDemo",
            swiftSettings: policy
        ),
    ],
    swiftLanguageModes: [.v6]
)
