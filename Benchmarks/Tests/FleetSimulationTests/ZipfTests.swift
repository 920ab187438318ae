// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FleetSimulation

@Suite struct ZipfTests {
    @Test(arguments: [0.0, 0.6, 0.8, 1.0, 1.3]) func `samples follow the formula of the law`(exponent: Double) {
        let zipf = Zipf(exponent: exponent, count: 50)
        let sampler = WeightedSampler(weights: zipf.weights)
        var generator = SeededGenerator(seed: 7)
        let draws = 400_000
        var counts = [Int](repeating: 0, count: zipf.count)
        for _ in 0..<draws { counts[sampler.index(&generator)] += 1 }
        let sum = (1...zipf.count).reduce(0.0) { $0 + 1 / pow(Double($1), exponent) }
        for (index, count) in counts.enumerated() {
            let share = 1 / pow(Double(index + 1), exponent) / sum
            // Five deviations of a binomial count.
            let tolerance = 5 * (share * (1 - share) * Double(draws)).squareRoot()
            #expect(abs(Double(count) - share * Double(draws)) < tolerance, "rank \(index + 1)")
        }
    }

    @Test(arguments: [0.5, 0.8, 1.1]) func `the fit finds the exponent of exact counts`(exponent: Double) throws {
        let counts = Zipf(exponent: exponent, count: 2_000).weights.map { Int(($0 * 1e7).rounded()) }
        let fitted = try #require(Zipf.fitted(to: counts.shuffled()))
        #expect(abs(fitted.exponent - exponent) < 0.001)
        #expect(fitted.count == 2_000)
    }

    @Test func `a single key has no exponent`() {
        #expect(Zipf.fitted(to: [5, 0]) == nil)
        #expect(Zipf.fitted(to: []) == nil)
    }

    @Test func `a sampler with one heavy weight gives the rare indices their share`() {
        let sampler = WeightedSampler(weights: [1, 998, 1])
        var generator = SeededGenerator(seed: 3)
        var counts = [0, 0, 0]
        for _ in 0..<1_000_000 { counts[sampler.index(&generator)] += 1 }
        #expect((800...1_200).contains(counts[0]))
        #expect((800...1_200).contains(counts[2]))
    }
}
