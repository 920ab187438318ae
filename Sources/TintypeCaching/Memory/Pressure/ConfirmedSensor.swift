/// A sensor whose word counts only while memory is short by the figures as well.
struct ConfirmedSensor: PressureSensor {
    let base: any PressureSensor
    let scarcity: MemoryScarcity

    var signal: PressureSignal? { self.base.signal }

    func read() -> MemoryPressure? {
        self.base.read().flatMap { self.scarcity.isReal ? $0 : nil }
    }
}
