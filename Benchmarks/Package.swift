// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// Measurements: make bench, make fleet, and debug-times.

/// The name that SwiftPM gives the root package: that of its folder.
///
/// The programs here use the root's `package` declarations under this name.
let rootName = String(
    (Context.packageDirectory.split(separator: "/").dropLast().last ?? "").lowercased().enumerated()
        .map { $1.isLetter || ($0 > 0 && $1.isNumber) ? $1 : "_" }
)

/// The root's policy for Swift targets.
let policy: [SwiftSetting] = [
    .unsafeFlags(["-package-name", rootName]),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "tintype-benchmarks",
    dependencies: [.package(name: "tintype", path: "..")],
    targets: [
        .target(name: "CTintypeAllocationCounter", path: "CTintypeAllocationCounter"),
        .target(
            name: "CTintypeCodecLoops",
            dependencies: [.product(name: "TintypeCoding", package: "tintype")],
            path: "CTintypeCodecLoops"
        ),
        .executableTarget(
            name: "TintypeBenchmarks",
            dependencies: [
                "CTintypeAllocationCounter", "CTintypeCodecLoops", .product(name: "Tintype", package: "tintype"),
                .product(name: "TintypeCluster", package: "tintype"),
            ],
            path: "TintypeBenchmarks",
            packageAccess: false,
            swiftSettings: policy
        ),
        .executableTarget(
            name: "CodecTimes",
            dependencies: [
                .product(name: "TintypeCoding", package: "tintype"),
                .product(name: "TintypeTestSupport", package: "tintype"),
            ],
            path: "CodecTimes",
            packageAccess: false,
            swiftSettings: policy
        ),
        // Needs no library, so it compiles in seconds.
        .executableTarget(
            name: "FleetSimulation",
            path: "FleetSimulation",
            exclude: ["fleet_charts.py", "run"],
            packageAccess: false,
            swiftSettings: policy
        ),
        .testTarget(
            name: "FleetSimulationTests",
            dependencies: ["FleetSimulation"],
            path: "Tests/FleetSimulationTests",
            packageAccess: false,
            swiftSettings: policy
        ),
    ],
    swiftLanguageModes: [.v6]
)
