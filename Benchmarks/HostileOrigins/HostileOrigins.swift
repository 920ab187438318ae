import Foundation
import Tintype
import TintypeTestSupport

/// Attacks a loader with origins that flood, drip, lie and smuggle, while healthy traffic goes on beside it.
///
///     HostileOrigins [SECONDS [BEHAVIOUR]]     default 600 seconds and every behaviour; `http2` for the table
///
/// First each behaviour is met once, and must end by the loader's own limits. Then calm and attack take turns; what is
/// compared is the healthy loads' time in each, and what is looked for is anything that no origin served.
/// Exits with 1 where a promise does not hold.
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

    /// Prints a line at once: a long run is looked at while it goes on.
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
