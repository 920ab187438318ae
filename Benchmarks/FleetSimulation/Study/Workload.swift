// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The requests that each fleet of a study receives, and the items that they name.
struct Workload: Sendable {
    /// The shares of a source's sizes in the requests for it.
    static let sizes = [0.4, 0.3, 0.2, 0.1]

    private enum Traffic: Sendable {
        case recorded([Request])
        case trace(RequestTrace, rate: Double)
        case synthetic(WeightedSampler, rate: Double, seconds: Double, seed: UInt64)
    }

    let catalogue: Catalogue
    /// The counted time.
    let window: Range<Double>
    private let traffic: Traffic

    /// Creates the requests for a fleet of so many nodes, each of which receives the rate of the options.
    init(_ options: Options, nodeCount: Int) throws {
        let sourceBytes = LogNormal(mean: options.sourceBytes, spread: 0.7)
        let resultBytes = LogNormal(mean: options.resultBytes, spread: 0.7)
        let rate = options.rate * Double(nodeCount)
        if let file = options.requestFile {
            let text = try String(contentsOf: URL(fileURLWithPath: file), encoding: .utf8)
            let recorded = try RecordedRequests(text: text, nodeCount: nodeCount)
            var generator = SeededGenerator(seed: options.fleet.seed)
            self.catalogue = Catalogue(
                sourceCount: recorded.sourceCount,
                sources: recorded.sources,
                sourceBytes,
                resultBytes,
                &generator
            )
            self.window = 0..<Double.infinity
            self.traffic = .recorded(recorded.requests)
        } else if let file = options.traceFile {
            let trace = try RequestTrace(path: file)
            self.catalogue = trace.catalogue(
                sourceBytes: Int(options.sourceBytes),
                resultBytes: Int(options.resultBytes)
            )
            self.window = 0..<Double.infinity
            self.traffic = .trace(trace, rate: rate)
        } else {
            let weights = Zipf(exponent: options.exponent, count: options.sourceCount).weights
            self.catalogue = Catalogue(
                sourceCount: options.sourceCount,
                sizes: Self.sizes.count,
                sourceBytes: sourceBytes,
                resultBytes: resultBytes,
                seed: options.fleet.seed
            )
            self.window = options.warmUp..<Double.infinity
            self.traffic = .synthetic(
                WeightedSampler(weights: weights),
                rate: rate,
                seconds: options.seconds,
                seed: options.fleet.seed &+ 1
            )
        }
    }

    /// Plays the requests against a fleet.
    func outcome(of settings: FleetSettings, windows: [Range<Double>]) -> Simulation.Outcome {
        var simulation = Simulation(settings, catalogue: self.catalogue, windows: windows)
        switch self.traffic {
        case .recorded(let requests): return simulation.run(requests.makeIterator())
        case .trace(let trace, let rate): return simulation.run(trace.requests(rate: rate).makeIterator())
        case .synthetic(let popularity, let rate, let seconds, let seed):
            return simulation.run(
                SyntheticTraffic(
                    popularity: popularity,
                    sourceCount: self.catalogue.sourceCount,
                    sizes: Self.sizes,
                    rate: rate,
                    seconds: seconds,
                    seed: seed
                )
            )
        }
    }
}
