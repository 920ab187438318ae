// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype
import TintypeTestSupport

/// Attacks a loader with origins that flood, drip, lie and smuggle, while healthy traffic continues.
///
///     HostileOrigins [SECONDS [BEHAVIOUR]]     default 600 seconds and every behaviour; `http2` for the table
///
/// First, the loader meets each behaviour once, and must end it by its own limits. Then calm and attack alternate. The
/// run compares the times of the healthy loads in both, and searches for results that no origin served. Exits with 1 if
/// a check fails.
@main
enum HostileOrigins {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let seconds = arguments.first.flatMap { Double($0) } ?? 600
        do {
            try raiseDescriptorLimit()
            let isSafe = try await Attack(only: arguments.dropFirst().first).run(seconds: seconds)
            Self.say(isSafe ? "passed" : "failed")
            exit(isSafe ? 0 : 1)
        } catch {
            Self.say("failed: \(error)")
            exit(1)
        }
    }

    /// Prints a line at once, so that a long run can be watched.
    static func say(_ line: String) {
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }

    private static func raiseDescriptorLimit() throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = min(limit.rlim_max, 8_192)
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur >= 2_048 else {
            throw TestSupportError("2,048 descriptors are needed; raise the hard limit (ulimit -Hn).")
        }
    }
}
