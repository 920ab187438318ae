// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The machine that produced the figures.
struct Machine: Sendable, Encodable {
    let processor: String
    let cores: Int
    let memoryMebibytes: Int
    let kernel: String
    let system: String
    /// The load average over one minute before the first row: other work on the machine shows here.
    let loadBefore: String
    let isReleaseBuild: Bool

    /// Looks at this machine now.
    static func current() -> Machine {
        var name = utsname()
        uname(&name)
        let kernel = withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return Machine(
            processor: self.field("model name", in: "/proc/cpuinfo") ?? "unknown",
            cores: ProcessInfo.processInfo.activeProcessorCount,
            memoryMebibytes: Int(ProcessInfo.processInfo.physicalMemory / 1_048_576),
            kernel: kernel,
            system: ProcessInfo.processInfo.operatingSystemVersionString,
            loadBefore: self.load,
            isReleaseBuild: self.isOptimised
        )
    }

    /// The load average over one minute, as it is now.
    static var load: String {
        let averages = try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8)
        return averages?.split(separator: " ").first.map(String.init) ?? "unknown"
    }

    /// Whether the compiler optimised this program.
    static var isOptimised: Bool {
        var isDebug = false
        // The expression is not evaluated in an optimised build.
        assert(
            {
                isDebug = true; return true
            }()
        )
        return !isDebug
    }

    private static func field(_ name: String, in path: String) -> String? {
        let lines = (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n")
        let line = lines?.first { $0.hasPrefix(name) }
        return line?.split(separator: ":", maxSplits: 1).last?.trimmingCharacters(in: .whitespaces)
    }
}
