// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// Values that Linux reports about the process of the test.
public enum ThisProcess {
    /// The name of the calling thread.
    public static var threadName: String {
        (try? Self.text(of: "/proc/thread-self/comm")) ?? ""
    }

    /// The names of all threads.
    public static var threadNames: [String] {
        let ids = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        return ids.compactMap { try? Self.text(of: "/proc/self/task/\($0)/comm") }
    }

    /// Returns the nice value of a thread, or of the calling one.
    public static func niceValue(of thread: CInt = 0) -> CInt {
        getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(thread))
    }

    /// Sets the nice value of the calling thread; returns whether the system permits it.
    @discardableResult
    public static func setNiceValue(_ value: CInt) -> Bool {
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, value) == 0
    }

    /// The nice value of the main thread.
    public static var usualNiceValue: CInt { Self.niceValue(of: getpid()) }

    /// Whether a thread may have a nice value 5 below that of the main thread, and 5 below 0.
    public static var mayRaisePriority: Bool {
        let own = Self.niceValue()
        defer { Self.setNiceValue(own) }
        return Self.setNiceValue(min(Self.usualNiceValue, 0) - 5)
    }

    /// The number of open file descriptors.
    public static var descriptorCount: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    }

    /// The number of descriptors for which the kernel has room without a larger table.
    public static var descriptorRoom: Int {
        let status = (try? String(decoding: Data(contentsOf: URL(filePath: "/proc/self/status")), as: UTF8.self)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("FDSize:") }
        return line?.split(separator: "\t").last.flatMap { Int($0) } ?? 0
    }

    /// The size of the address space in bytes.
    public static var addressSpaceBytes: Int {
        let pages = (try? Self.text(of: "/proc/self/statm"))?.split(separator: " ").first
        return (pages.flatMap { Int($0) } ?? 0) * Int(getpagesize())
    }

    /// The size of the resident memory in bytes.
    public static var residentBytes: Int {
        let pages = (try? Self.text(of: "/proc/self/statm"))?.split(separator: " ").dropFirst().first
        return (pages.flatMap { Int($0) } ?? 0) * Int(getpagesize())
    }

    /// Whether the thread sanitizer runs, which makes simple loops take ten times as long.
    public static let isThreadSanitized = dlsym(nil, "__tsan_init") != nil
    /// Whether the address or the thread sanitizer runs, which end the process if an allocation fails.
    public static let isSanitized = isThreadSanitized || dlsym(nil, "__asan_init") != nil

    private static func text(of path: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: path)).prefix { $0 != 0x0A }, as: UTF8.self)
    }
}
