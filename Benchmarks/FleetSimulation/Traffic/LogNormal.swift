// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A log-normal distribution: most values are near the median, and a few are several times as large.
struct LogNormal: Sendable {
    var median: Double
    /// The deviation of the logarithm.
    ///
    /// With 0 every value is the median.
    var spread: Double

    init(median: Double, spread: Double) {
        self.median = median
        self.spread = spread
    }

    /// The distribution with this mean.
    init(mean: Double, spread: Double) {
        self.init(median: mean / exp(spread * spread / 2), spread: spread)
    }

    func value(_ generator: inout SeededGenerator) -> Double {
        self.spread == 0 ? self.median : self.median * exp(self.spread * generator.normal())
    }
}
