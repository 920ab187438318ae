// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency

/// A sensor that watches the kernel's pressure stall information: the time for which tasks waited for memory.
///
/// The kernel signals when tasks have waited for a given part of a window. If it does not permit that, the monitor
/// polls the total periodically.
///
/// Source: the kernel's `Documentation/accounting/psi.rst`.
final class StallSensor: PressureSensor {
    private struct Sum {
        var stalled: Int
        var time: SuspendingClock.Instant
    }

    private let level: MemoryPressure
    private let file: Descriptor
    private let isSignalled: Bool
    private let last: Locked<Sum>

    /// The share of the time from which the sensor reports pressure.
    private static let threshold = 0.15

    /// Watches one line of `path`, such as `/proc/pressure/memory`, and fails if there is no such file.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - level: The line to watch.
    ///   - usesTrigger: Whether to register for signals.
    init?(path: String, level: MemoryPressure, usesTrigger: Bool = true) {
        let name = level == .some ? "some" : "full"
        // Without privileges, a window must be a multiple of 2 s.
        let triggers = usesTrigger ? ["\(name) 150000 1000000\0", "\(name) 300000 2000000\0"] : []
        var armed: Descriptor?
        for trigger in triggers where armed == nil {
            if let file = Descriptor(path: path, flags: O_RDWR | O_NONBLOCK), file.write(trigger) { armed = file }
        }
        guard let file = armed ?? Descriptor(path: path, flags: O_RDONLY) else { return nil }
        self.level = level
        self.file = file
        self.isSignalled = armed != nil
        let text = Self.stalled(in: file.text(), level)
        guard self.isSignalled || text != nil else { return nil }
        self.last = Locked(Sum(stalled: text ?? 0, time: .now))
    }

    var signal: PressureSignal? {
        self.isSignalled ? PressureSignal(descriptor: self.file.number, events: Int16(POLLPRI)) : nil
    }

    func read() -> MemoryPressure? {
        if self.isSignalled { return self.level }
        guard let stalled = Self.stalled(in: self.file.text(), self.level) else { return nil }
        let now = SuspendingClock.now
        return self.last.withLock { last in
            let share = Double(stalled - last.stalled) / max((now - last.time) / .microseconds(1), 1)
            last = Sum(stalled: stalled, time: now)
            return share >= Self.threshold ? self.level : nil
        }
    }

    /// Returns the microseconds for which tasks have waited, from a line like `some avg10=0.00 ... total=123`.
    static func stalled(in text: String, _ level: MemoryPressure) -> Int? {
        let name = level == .some ? "some " : "full "
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(name) }),
            let total = line.split(separator: " ").last, total.hasPrefix("total=")
        else { return nil }
        return Int(total.dropFirst("total=".count))
    }
}
