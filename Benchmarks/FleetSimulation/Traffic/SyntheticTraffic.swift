// SPDX-License-Identifier: Apache-2.0

/// Requests at random times for sources of a given popularity, in sizes of a given popularity.
struct SyntheticTraffic: IteratorProtocol, Sendable {
    private let sampler: WeightedSampler
    private let sizes: WeightedSampler
    private let sizeCount: Int
    private let sourceCount: Int
    private let gap: Double
    private let end: Double
    private var time = 0.0
    private var generator: SeededGenerator

    /// Creates `rate` requests a second, whose sources and sizes have the given weights.
    ///
    /// The results of a source follow each other in the catalogue.
    init(popularity: WeightedSampler, sourceCount: Int, sizes: [Double], rate: Double, seconds: Double, seed: UInt64) {
        self.sampler = popularity
        self.sizes = WeightedSampler(weights: sizes)
        self.sizeCount = sizes.count
        self.sourceCount = sourceCount
        self.gap = 1 / rate
        self.end = seconds
        self.generator = SeededGenerator(seed: seed)
    }

    mutating func next() -> Request? {
        self.time += self.generator.exponential(mean: self.gap)
        guard self.time < self.end else { return nil }
        let source = self.sampler.index(&self.generator)
        let size = self.sizes.index(&self.generator)
        return Request(time: self.time, result: self.sourceCount + source * self.sizeCount + size)
    }
}
