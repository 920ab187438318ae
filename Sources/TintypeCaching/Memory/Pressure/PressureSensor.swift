import Glibc

/// Something that tells when memory is short.
///
/// Used by the thread of one ``MemoryPressureMonitor`` only.
package protocol PressureSensor: Sendable {
    /// What to wait for with `poll`, or `nil` for a sensor that has to be asked from time to time.
    var signal: PressureSignal? { get }

    /// How short memory is, asked after a signal or from time to time; `nil` when it is not.
    func read() -> MemoryPressure?
}

/// A descriptor and the events of `poll` that tell of pressure.
package struct PressureSignal: Sendable {
    /// The descriptor, open for as long as the sensor lives.
    package let descriptor: CInt
    /// `POLLPRI` or `POLLIN`.
    package let events: Int16

    package init(descriptor: CInt, events: Int16) {
        self.descriptor = descriptor
        self.events = events
    }
}

/// An open file, closed with its last reference.
final class Descriptor: Sendable {
    let number: CInt

    /// Opens a file, or is `nil` when it can't be opened.
    init?(path: String, flags: CInt) {
        self.number = open(path, flags | O_CLOEXEC)
        guard self.number >= 0 else { return nil }
    }

    /// Takes over an open descriptor, or is `nil` when there is none.
    init?(_ number: CInt) {
        self.number = number
        guard number >= 0 else { return nil }
    }

    deinit {
        if self.number >= 0 { close(self.number) }
    }

    /// Writes `text` with one call; says whether all of it was taken.
    func write(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { Glibc.write(self.number, $0.baseAddress, $0.count) == $0.count }
    }

    /// The start of the file as text; such files are short.
    func text() -> String {
        var bytes = [UInt8](repeating: 0, count: 8_192)
        let count = pread(self.number, &bytes, bytes.count, 0)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : ""
    }

    /// Sets an eventfd back to 0.
    func drain() {
        var count: UInt64 = 0
        _ = Glibc.read(self.number, &count, MemoryLayout<UInt64>.size)
    }

    /// Counts an eventfd up.
    func signal() {
        var one: UInt64 = 1
        _ = Glibc.write(self.number, &one, MemoryLayout<UInt64>.size)
    }
}
