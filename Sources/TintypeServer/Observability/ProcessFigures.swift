// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypePrometheus

/// The resources that this process uses, under the names of Prometheus' client libraries.
///
/// A figure is `nil` if `/proc` does not show it.
struct ProcessFigures: Sendable {
    /// The virtual memory in bytes.
    let virtualBytes: Int?
    /// The resident memory in bytes.
    let residentBytes: Int?
    /// The processor time of all threads.
    let processorSeconds: Double
    /// The number of open descriptors.
    let openDescriptors: Int?
    /// The most descriptors that may be open.
    let maximumDescriptors: Int?
    /// The start of the process, in seconds since 1970.
    let startTime: Double?

    /// The figures of this moment.
    static var current: ProcessFigures {
        let pages = Self.text(of: "/proc/self/statm").split(separator: " ").compactMap { Int($0) }
        let pageSize = sysconf(CInt(_SC_PAGESIZE))
        return ProcessFigures(
            virtualBytes: pages.count > 1 ? pages[0] * pageSize : nil,
            residentBytes: pages.count > 1 ? pages[1] * pageSize : nil,
            processorSeconds: Self.currentProcessorSeconds,
            openDescriptors: Self.currentDescriptorCount,
            maximumDescriptors: Self.currentDescriptorLimit,
            startTime: Self.processStart
        )
    }

    /// Writes the figures that are known.
    func write(to text: inout PrometheusText) {
        text.write("cpu_seconds_total", "counter", "Processor time in seconds.", self.processorSeconds)
        if let residentBytes {
            text.write("resident_memory_bytes", "gauge", "Bytes of memory in RAM.", residentBytes)
        }
        if let virtualBytes {
            text.write("virtual_memory_bytes", "gauge", "Bytes of address space.", virtualBytes)
        }
        if let openDescriptors {
            text.write("open_fds", "gauge", "Open file descriptors.", openDescriptors)
        }
        if let maximumDescriptors {
            text.write("max_fds", "gauge", "The most file descriptors that may be open.", maximumDescriptors)
        }
        if let startTime {
            text.write("start_time_seconds", "gauge", "The start of the process, in seconds since 1970.", startTime)
        }
    }

    private static var currentProcessorSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static var currentDescriptorCount: Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        // The folder's own descriptor does not count.
        var count = -1
        while let entry = readdir(folder) {
            if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
        }
        return count
    }

    private static var currentDescriptorLimit: Int? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
        return Int(clamping: limit.rlim_cur)
    }

    /// The start of the machine plus the age of the machine at the start of the process.
    private static let processStart: Double? = {
        let boot = Self.text(of: "/proc/stat").split(separator: "\n").first { $0.hasPrefix("btime ") }
        // The name of the program is in parentheses, and may contain spaces and parentheses.
        let fields = Self.text(of: "/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
        guard let boot, let seconds = Double(boot.dropFirst(6)), fields.count > 19, let ticks = Double(fields[19])
        else { return nil }
        return seconds + ticks / Double(sysconf(CInt(_SC_CLK_TCK)))
    }()

    private static func text(of path: String) -> String {
        (try? Data(contentsOf: URL(filePath: path))).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}
