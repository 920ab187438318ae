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
