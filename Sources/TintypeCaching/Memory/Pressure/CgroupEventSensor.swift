import Glibc
import TintypeConcurrency

/// Watches the `memory.events` of a cgroup of version 2: its limits were reached.
///
/// Source: the kernel's `Documentation/admin-guide/cgroup-v2.rst`; the file signals when it changes.
final class CgroupEventSensor: PressureSensor {
    private let file: Descriptor
    private let last: Locked<Int>

    /// Watches the group at `folder`; `nil` where it has no such file.
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

    /// How often memory was reclaimed, refused or taken by force because of a limit.
    static func count(in text: String) -> Int {
        text.split(separator: "\n").reduce(0) { sum, line in
            let fields = line.split(separator: " ")
            guard fields.count == 2, ["high", "max", "oom"].contains(fields[0]) else { return sum }
            return sum + (Int(fields[1]) ?? 0)
        }
    }
}
