// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// Fuzzers: make fuzz, and run for one of them.

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
    name: "tintype-fuzz",
    dependencies: [.package(name: "tintype", path: "..")],
    targets: [
        .target(
            name: "TintypeFuzzSupport",
            dependencies: [.product(name: "TintypeCoding", package: "tintype")],
            path: "Support",
            packageAccess: false,
            swiftSettings: policy
        ),
        fuzzer("FuzzGIF"),
        fuzzer("FuzzImageAddress", [.product(name: "TintypeImgproxy", package: "tintype")]),
        fuzzer("FuzzJPEG"),
        fuzzer("FuzzJPEGEntropy"),
        fuzzer("FuzzJPEGTransform", [.product(name: "TintypeConformanceSupport", package: "tintype")]),
        fuzzer("FuzzPNG"),
        fuzzer("FuzzRequestHead", [.product(name: "TintypeHTTP", package: "tintype")]),
        fuzzer("FuzzTransforms"),
        fuzzer("FuzzWebP"),
    ],
    swiftLanguageModes: [.v6]
)

func fuzzer(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .executableTarget(
        name: name,
        dependencies: ["TintypeFuzzSupport"] + dependencies,
        path: String(name.dropFirst("Fuzz".count)),
        packageAccess: false,
        swiftSettings: policy
    )
}
