// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Zipf's law: the key of rank `r` is requested in proportion to `1 / r^exponent`.
struct Zipf: Sendable {
    let exponent: Double
    let count: Int

    /// The weight of each rank, the most popular first.
    ///
    /// The first weight is 1.
    var weights: [Double] {
        (1...self.count).map { pow(Double($0), -self.exponent) }
    }

    /// The share of requests for the most popular keys.
    func share(ofTop count: Int) -> Double {
        let weights = self.weights
        return weights.prefix(count).reduce(0, +) / weights.reduce(0, +)
    }

    /// The law that makes the given numbers of requests for each key most likely.
    ///
    /// The keys are ranked by their requests. The likelihood is greatest if the law's mean logarithm of the rank is that
    /// of the requests.
    ///
    /// - Returns: `nil` if fewer than two keys are requested.
    static func fitted(to counts: [Int]) -> Zipf? {
        let ranked = counts.filter { $0 > 0 }.sorted(by: >)
        guard ranked.count > 1 else { return nil }
        let logarithms = (1...ranked.count).map { log(Double($0)) }
        let total = Double(ranked.reduce(0, +))
        let mean = zip(ranked, logarithms).reduce(0) { $0 + Double($1.0) * $1.1 } / total
        var (low, high) = (0.0, 10.0)
        for _ in 0..<60 {
            let middle = (low + high) / 2
            let weights = logarithms.map { exp(-middle * $0) }
            let expected = zip(weights, logarithms).reduce(0) { $0 + $1.0 * $1.1 } / weights.reduce(0, +)
            // A larger exponent moves requests to lower ranks.
            if expected > mean { low = middle } else { high = middle }
        }
        return Zipf(exponent: (low + high) / 2, count: ranked.count)
    }
}
