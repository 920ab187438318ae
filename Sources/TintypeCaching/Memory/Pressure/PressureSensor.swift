// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A source of reports that memory is short.
///
/// Only the thread of one ``MemoryPressureMonitor`` uses it.
package protocol PressureSensor: Sendable {
    /// The descriptor to wait for with `poll`, or `nil` if the monitor must poll the sensor periodically.
    var signal: PressureSignal? { get }

    /// Returns the pressure after a signal or a periodic poll, or `nil` if memory is not short.
    func read() -> MemoryPressure?
}

/// A descriptor, and the events of `poll` that signal pressure.
package struct PressureSignal: Sendable {
    /// The descriptor, which is open as long as the sensor lives.
    package let descriptor: CInt
    /// `POLLPRI` or `POLLIN`.
    package let events: Int16

    package init(descriptor: CInt, events: Int16) {
        self.descriptor = descriptor
        self.events = events
    }
}

/// An open file, which is closed when the last reference is released.
final class Descriptor: Sendable {
    let number: CInt

    /// Opens a file, and fails if that is impossible.
    init?(path: String, flags: CInt) {
        self.number = open(path, flags | O_CLOEXEC)
        guard self.number >= 0 else { return nil }
    }

    /// Takes ownership of an open descriptor, and fails if the number is negative.
    init?(_ number: CInt) {
        self.number = number
        guard number >= 0 else { return nil }
    }

    deinit {
        if self.number >= 0 { close(self.number) }
    }

    /// Writes `text` with one call, and returns whether the call wrote all of it.
    func write(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { Glibc.write(self.number, $0.baseAddress, $0.count) == $0.count }
    }

    /// Returns the first 8 KiB of the file as text.
    func text() -> String {
        var bytes = [UInt8](repeating: 0, count: 8_192)
        let count = pread(self.number, &bytes, bytes.count, 0)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : ""
    }

    /// Resets an eventfd to 0.
    func drain() {
        var count: UInt64 = 0
        _ = Glibc.read(self.number, &count, MemoryLayout<UInt64>.size)
    }

    /// Increments an eventfd.
    func signal() {
        var one: UInt64 = 1
        _ = Glibc.write(self.number, &one, MemoryLayout<UInt64>.size)
    }
}
