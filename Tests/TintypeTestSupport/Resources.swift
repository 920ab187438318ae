// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import FoundationEssentials
import Glibc

/// The resources that this process holds and has used.
public struct Resources: Sendable {
    /// The size of the resident memory in bytes.
    public let residentBytes: Int
    /// The size in bytes of the memory that `malloc` has allocated.
    public let heapBytes: Int
    /// The names of the threads.
    public let threads: [String]
    /// The number of open descriptors.
    public let descriptors: Int
    /// The processor time of all threads so far.
    public let cpuSeconds: Double

    /// Returns the current resources, after `malloc` has released its unused memory.
    public static func now() throws -> Resources {
        let heapBytes = cshims_trim_heap()
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        let cpu = [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
        return Resources(
            residentBytes: try self.status("VmRSS") * 1024,
            heapBytes: heapBytes,
            threads: try self.threadNames(),
            descriptors: try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count,
            cpuSeconds: cpu
        )
    }

    private static func threadNames() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").compactMap {
            try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8).filter { !$0.isWhitespace }
        }.sorted()
    }

    private static func status(_ name: String) throws -> Int {
        let text = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
        guard let value = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) }) else {
            throw TestSupportError("/proc/self/status has no \(name)")
        }
        return value
    }
}
