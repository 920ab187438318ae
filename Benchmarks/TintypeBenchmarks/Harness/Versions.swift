// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The versions of all sides, as they report them.
enum Versions {
    /// Returns the versions of all sides that respond.
    static func all(_ session: Session) async -> [String: String] {
        var versions = (try? await session.python().versions()) ?? [:]
        versions["swift"] = await self.firstLine(["/usr/bin/env", "swift", "--version"])
        versions["curl"] = await self.firstLine(["/usr/bin/env", "curl", "--version"])
        versions["commit"] = await self.firstLine([
            "/usr/bin/env", "git", "-C", session.folders.benchmarks.path, "describe", "--always", "--dirty",
        ])
        for library in ["libjpeg", "spng", "libwebp", "libcurl"] {
            versions["tintype \(library)"] = await self.firstLine([
                "/usr/bin/env", "pkg-config", "--modversion", library,
            ])
        }
        return versions
    }

    private static func firstLine(_ command: [String]) async -> String? {
        guard let run = try? await ChildProcess.run(command), run.exit.status == 0 else { return nil }
        return run.output.split(separator: "\n").first.map(String.init)
    }
}
