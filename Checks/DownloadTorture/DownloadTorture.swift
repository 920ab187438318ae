// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeTestSupport

/// Runs long checks of downloads: ten thousand at once, and a storm of cancellations.
///
/// Exits with 1 if a check fails.
@main
enum DownloadTorture {
    static func main() async {
        let names = CommandLine.arguments.dropFirst()
        do {
            try raiseDescriptorLimit()
            var hasPassed = true
            if names.isEmpty || names.contains("crowd") {
                hasPassed = try await Crowd().run() && hasPassed
            }
            if names.isEmpty || names.contains("storm") {
                hasPassed = try await Storm().run() && hasPassed
            }
            print(hasPassed ? "passed" : "failed: see SHORT above")
            exit(hasPassed ? 0 : 1)
        } catch {
            print("failed: \(error)")
            exit(1)
        }
    }

    private static func raiseDescriptorLimit() throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur >= 12_000 else {
            throw TestSupportError("12,000 descriptors are needed; raise the hard limit (ulimit -Hn)")
        }
    }
}
