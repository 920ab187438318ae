// SPDX-License-Identifier: Apache-2.0

/// The limits for a load of a file of at most a megabyte under default limits.
enum Budget {
    /// Processor time.
    static let seconds = 5.0
    /// The whole seconds of processor time, rounded up, after which a child is killed.
    static let killSeconds = 7
    /// The same for an encode, which tries several qualities.
    ///
    /// A slow encode is reported, but is not a failure.
    static let encodeKillSeconds = 120
    /// How much more memory than the gate counted.
    static let ratio = 1.1
    /// The process's own bytes that no counter includes, such as the pages of its code.
    static let constantBytes = 8 << 20

    /// Returns a description of how a measurement exceeds the budget, or `nil` if it does not.
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
