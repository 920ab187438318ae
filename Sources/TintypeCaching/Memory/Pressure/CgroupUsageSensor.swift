import Glibc

/// Looks from time to time how near a cgroup of version 1 is to its limit, where it can't be watched.
///
/// Counts what processes hold, not the page cache, which goes by itself.
final class CgroupUsageSensor: PressureSensor {
    private let limit: Descriptor
    private let statistics: Descriptor

    /// Looks at the group at `folder`; `nil` where it has no such files.
    init?(folder: String) {
        guard let limit = Descriptor(path: folder + "/memory.limit_in_bytes", flags: O_RDONLY),
            let statistics = Descriptor(path: folder + "/memory.stat", flags: O_RDONLY)
        else { return nil }
        self.limit = limit
        self.statistics = statistics
    }

    var signal: PressureSignal? { nil }

    func read() -> MemoryPressure? {
        guard let line = self.limit.text().split(separator: "\n").first, let limit = Int(line),
            let held = self.statistics.text().split(separator: "\n").first(where: { $0.hasPrefix("total_rss ") }),
            let used = Int(held.dropFirst("total_rss ".count))
        else { return nil }
        let share = Double(used) / Double(limit)
        return share >= 0.97 ? .full : share >= 0.9 ? .some : nil
    }
}
