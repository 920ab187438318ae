// SPDX-License-Identifier: Apache-2.0

/// Samples of one figure, summed up: the median to quote, the rest to judge it by.
struct Summary: Sendable, Encodable {
    /// How many samples there were.
    let count: Int
    let minimum: Double
    /// A quarter of the samples is below.
    let lowerQuartile: Double
    let median: Double
    /// A quarter of the samples is above.
    let upperQuartile: Double
    let maximum: Double

    /// Summarises `samples`, which must not be empty.
    init(_ samples: [Double]) {
        precondition(!samples.isEmpty, "nothing was measured")
        let sorted = samples.sorted()
        self.count = sorted.count
        self.minimum = sorted[0]
        self.lowerQuartile = Self.quantile(0.25, of: sorted)
        self.median = Self.quantile(0.5, of: sorted)
        self.upperQuartile = Self.quantile(0.75, of: sorted)
        self.maximum = sorted[sorted.count - 1]
    }

    /// Interpolates between the two samples next to a position (type 7 of Hyndman and Fan).
    private static func quantile(_ share: Double, of sorted: [Double]) -> Double {
        let place = share * Double(sorted.count - 1)
        let below = Int(place)
        let above = min(below + 1, sorted.count - 1)
        return sorted[below] + (place - Double(below)) * (sorted[above] - sorted[below])
    }
}
