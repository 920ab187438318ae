// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FleetSimulation

@Suite struct DistributionTests {
    @Test func `the generator gives the published numbers of SplitMix64`() {
        var generator = SeededGenerator(seed: 1_234_567)
        let numbers = (0..<3).map { _ in generator.next() }
        #expect(numbers == [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423])
    }

    @Test func `a log-normal distribution has the mean that it was made for`() {
        let distribution = LogNormal(mean: 35_000, spread: 0.7)
        var generator = SeededGenerator(seed: 5)
        let count = 200_000
        let values = (0..<count).map { _ in distribution.value(&generator) }
        let mean = values.reduce(0, +) / Double(count)
        #expect(abs(mean / 35_000 - 1) < 0.02)
        let below = values.count { $0 < distribution.median }
        #expect(abs(Double(below) / Double(count) - 0.5) < 0.01)
    }

    @Test func `a distribution without spread is its median`() {
        var generator = SeededGenerator(seed: 1)
        #expect(LogNormal(median: 3, spread: 0).value(&generator) == 3)
    }

    @Test func `synthetic traffic arrives at its rate and ends in time`() {
        let popularity = WeightedSampler(weights: [1, 1])
        var traffic = SyntheticTraffic(
            popularity: popularity,
            sourceCount: 2,
            sizes: [3, 1],
            rate: 100,
            seconds: 500,
            seed: 9
        )
        var times: [Double] = []
        var results = [0, 0, 0, 0]
        while let request = traffic.next() {
            times.append(request.time)
            results[request.result - 2] += 1
        }
        // Five deviations of a Poisson count.
        #expect(abs(times.count - 50_000) < 1_118)
        #expect(times == times.sorted())
        #expect(times.allSatisfy { $0 < 500 })
        #expect(abs(Double(results[0]) / Double(results[1]) - 3) < 0.2)
    }
}
