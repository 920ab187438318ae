// swift-tools-version: 6.2
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
        .executableTarget(
            name: "TintypeDemo",
            dependencies: [
                .product(name: "Tintype", package: "tintype"),
                .product(name: "TintypeTestSupport", package: "tintype"),
            ],
            path: "TintypeDemo",
            swiftSettings: policy
        )
    ],
    swiftLanguageModes: [.v6]
)
