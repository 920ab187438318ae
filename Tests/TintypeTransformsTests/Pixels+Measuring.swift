// SPDX-License-Identifier: Apache-2.0

import TintypeImage
import TintypeTestSupport

extension PixelBuffer {
    /// The mean of all samples.
    var mean: Double {
        let samples = self.samples
        return Double(samples.reduce(0) { $0 + Int($1) }) / Double(samples.count)
    }
}
