// SPDX-License-Identifier: Apache-2.0

/// Draws indices with given weights, each in constant time.
///
/// Source: Vose, "A linear algorithm for generating random numbers with a given distribution", IEEE Transactions on
/// Software Engineering 17(9), 1991.
struct WeightedSampler: Sendable {
    private var thresholds: [Double]
    private var aliases: [Int32]

    init(weights: [Double]) {
        precondition(!weights.isEmpty && weights.count <= Int(Int32.max))
        let scale = Double(weights.count) / weights.reduce(0, +)
        self.thresholds = weights.map { $0 * scale }
        self.aliases = weights.indices.map { Int32($0) }
        var small = weights.indices.filter { self.thresholds[$0] < 1 }
        var large = weights.indices.filter { self.thresholds[$0] >= 1 }
        while let light = small.last, let heavy = large.last {
            small.removeLast()
            self.aliases[light] = Int32(heavy)
            self.thresholds[heavy] -= 1 - self.thresholds[light]
            if self.thresholds[heavy] < 1 {
                large.removeLast()
                small.append(heavy)
            }
        }
        // Rounding leaves a few columns that are full.
        for index in small + large { self.thresholds[index] = 1 }
    }

    func index(_ generator: inout SeededGenerator) -> Int {
        let position = generator.unit() * Double(self.thresholds.count)
        let column = min(Int(position), self.thresholds.count - 1)
        return position - Double(column) < self.thresholds[column] ? column : Int(self.aliases[column])
    }
}
