import CShims
import Glibc

/// Watches the `memory.pressure_level` of a cgroup of version 1, by an eventfd that the kernel counts up.
///
/// Source: the kernel's `Documentation/admin-guide/cgroup-v1/memory.rst`, section 11.
final class CgroupLevelSensor: PressureSensor {
    private let level: MemoryPressure
    private let event: Descriptor
    /// Kept open: the registration lives as long as it.
    private let file: Descriptor

    /// Watches the group at `folder`; `nil` where it has no such file or it may not be watched.
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
