// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// Programs that check Tintype for minutes or hours: make torture, attack, hunt and conformance.

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
    name: "tintype-checks",
    dependencies: [.package(name: "tintype", path: "..")],
    targets: [
        program("CommandTorture", ["TintypeCoding", "TintypeTestSupport"]),
        program("DownloadTorture", ["TintypeDownloading", "TintypeTestSupport"]),
        program("FleetTorture", ["Tintype", "TintypeCluster", "TintypeCoding", "TintypeTestSupport"]),
        program("HostileOrigins", ["Tintype", "TintypeTestSupport"], exclude: ["origin.py", "http2_table.py"]),
        program("LoaderTorture", ["Tintype", "TintypeTargets", "TintypeTestSupport", "TintypeOrderStorm"]),
        program("SlowFiles", ["Tintype", "TintypeCoding", "TintypeTestSupport"]),
        program("TintypeConformance", ["TintypeConformanceSupport"]),
    ],
    swiftLanguageModes: [.v6]
)

/// A program that depends on products of Tintype.
func program(_ name: String, _ products: [String], exclude: [String] = []) -> Target {
    .executableTarget(
        name: name,
        dependencies: products.map { .product(name: $0, package: "tintype") },
        path: name,
        exclude: exclude,
        packageAccess: false,
        swiftSettings: policy
    )
}
