import Glibc

/// Whether memory is short by the figures, beside what tasks waited for.
///
/// Stalls alone don't say so: a kernel that gives memory back to its host ahead of need, and another
/// group that fights with its own limit, stall tasks on a machine that has plenty.
struct MemoryScarcity: Sendable {
    /// The share of the machine's memory under which it is short.
    private static let leastAvailable = 0.1
    /// The share of a group's limit from which on the group is short.
    private static let mostUsed = 0.9

    private let machine: Descriptor?
    private let limit: Descriptor?
    private let usage: Descriptor?

    /// Looks at the machine, and at the group of version 2 at `folder`, if there is one.
    init(meminfoPath: String = "/proc/meminfo", folder: String? = nil) {
        self.machine = Descriptor(path: meminfoPath, flags: O_RDONLY)
        self.limit = folder.flatMap { Descriptor(path: $0 + "/memory.max", flags: O_RDONLY) }
        self.usage = folder.flatMap { Descriptor(path: $0 + "/memory.current", flags: O_RDONLY) }
    }

    /// Whether the machine or the group is short; also where neither can be told.
    var isReal: Bool {
        if let share = self.groupShare, share >= Self.mostUsed { return true }
        guard let text = self.machine?.text(), let total = Self.value(of: "MemTotal:", in: text),
            let available = Self.value(of: "MemAvailable:", in: text), total > 0
        else { return true }
        return Double(available) / Double(total) < Self.leastAvailable
    }

    private var groupShare: Double? {
        guard let limit = self.limit.flatMap({ Self.number(in: $0.text()) }), limit > 0,
            let usage = self.usage.flatMap({ Self.number(in: $0.text()) })
        else { return nil }
        return Double(usage) / Double(limit)
    }

    /// The kibibytes on one line of `/proc/meminfo`.
    private static func value(of name: String, in text: String) -> Int? {
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }

    private static func number(in text: String) -> Int? {
        text.split(separator: "\n").first.flatMap { Int($0) }
    }
}
