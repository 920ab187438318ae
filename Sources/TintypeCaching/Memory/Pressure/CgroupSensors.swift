// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
import TintypeConcurrency

/// A sensor that watches `memory.events` of a cgroup of version 2, and reports when the group reaches a limit.
///
/// Source: the kernel's `Documentation/admin-guide/cgroup-v2.rst`. The file signals each change.
final class CgroupEventSensor: PressureSensor {
    private let file: Descriptor
    private let last: Locked<Int>

    /// Watches the group at `folder`, and fails if it has no such file.
    init?(folder: String) {
        guard let file = Descriptor(path: folder + "/memory.events", flags: O_RDONLY) else { return nil }
        self.file = file
        self.last = Locked(Self.count(in: file.text()))
    }

    var signal: PressureSignal? { PressureSignal(descriptor: self.file.number, events: Int16(POLLPRI)) }

    func read() -> MemoryPressure? {
        let count = Self.count(in: self.file.text())
        return self.last.withLock { last in
            defer { last = count }
            return count > last ? .full : nil
        }
    }

    /// Returns how often the kernel reclaimed memory, refused it or killed a process because of a limit.
    static func count(in text: String) -> Int {
        text.split(separator: "\n").reduce(0) { sum, line in
            let fields = line.split(separator: " ")
            guard fields.count == 2, ["high", "max", "oom"].contains(fields[0]) else { return sum }
            return sum + (Int(fields[1]) ?? 0)
        }
    }
}

/// A sensor that watches `memory.pressure_level` of a cgroup of version 1, with an eventfd that the kernel signals.
///
/// Source: the kernel's `Documentation/admin-guide/cgroup-v1/memory.rst`, section 11.
final class CgroupLevelSensor: PressureSensor {
    private let level: MemoryPressure
    private let event: Descriptor
    /// The file of the registration, which lasts while the file is open.
    private let file: Descriptor

    /// Watches the group at `folder`, and fails if it has no such file or does not permit it.
    init?(folder: String, level: MemoryPressure) {
        guard let file = Descriptor(path: folder + "/memory.pressure_level", flags: O_RDONLY),
            let control = Descriptor(path: folder + "/cgroup.event_control", flags: O_WRONLY),
            let event = Descriptor(cshims_eventfd()),
            control.write("\(event.number) \(file.number) \(level == .some ? "medium" : "critical")")
        else { return nil }
        self.level = level
        self.event = event
        self.file = file
    }

    var signal: PressureSignal? { PressureSignal(descriptor: self.event.number, events: Int16(POLLIN)) }

    func read() -> MemoryPressure? {
        self.event.drain()
        return self.level
    }
}

/// A sensor that polls how near a cgroup of version 1 is to its limit, if the group does not permit signals.
///
/// It counts the resident memory of processes, not the page cache, which the kernel reclaims by itself.
final class CgroupUsageSensor: PressureSensor {
    private let limit: Descriptor
    private let statistics: Descriptor

    /// Polls the group at `folder`, and fails if it has no such files.
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
