/// What a load of a file of at most a megabyte may take under default limits.
enum Budget {
    /// The processor's time.
    static let seconds = 5.0
    /// When a child is ended that does not end by itself: whole seconds of the processor, begun ones too.
    static let killSeconds = 7
    /// The same for an encode, which tries several qualities; how long it takes is reported, and no failure.
    static let encodeKillSeconds = 120
    /// How much more memory than the gate counted.
    static let ratio = 1.1
    /// What the process itself needs, such as the pages of its code: bytes that are counted nowhere.
    static let constantBytes = 8 << 20

    /// What a measurement is over, in words; `nil` within the budget.
    static func excess(of measurement: Measurement) -> (what: String, text: String)? {
        if measurement.outcome.hasPrefix("ended by signal") {
            return ("end", "\(measurement.outcome) after \(measurement.seconds.rounded(2)) s of processor time")
        }
        if !measurement.kind.isEncode, measurement.seconds > self.seconds {
            return ("time", "\(measurement.seconds.rounded(2)) s of processor time, budget \(self.seconds) s")
        }
        let allowed = Int(Double(measurement.countedBytes) * self.ratio) + self.constantBytes
        if measurement.takenBytes > allowed {
            return (
                "memory", "\(measurement.takenBytes >> 20) MiB taken, \(measurement.countedBytes >> 20) MiB counted"
            )
        }
        return nil
    }
}

extension Double {
    /// The value with so many decimal places.
    func rounded(_ places: Int) -> Double {
        let factor = (0..<places).reduce(1.0) { factor, _ in factor * 10 }
        return (self * factor).rounded() / factor
    }
}
