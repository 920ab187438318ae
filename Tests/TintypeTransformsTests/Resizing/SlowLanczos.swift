// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeImage
import TintypeTestSupport
import TintypeTransforms

/// Resampling of one gray plane by its definition, in double precision, as the reference for the fast resampling.
struct SlowLanczos {
    private let lobes = 3.0
    private let source: [[Double]]

    init(_ pixels: PixelBuffer, channel: Int = 0) {
        self.source = (0..<pixels.height).map { row in
            (0..<pixels.width).map { Double(pixels.sample($0, row, channel)) }
        }
    }

    /// Returns the samples of the part and size in `geometry`, row by row.
    func resample(_ geometry: ResizeGeometry) -> [[Double]] {
        let columns = self.weights(
            from: geometry.left,
            length: geometry.sourceWidth,
            count: geometry.width,
            of: self.source[0].count
        )
        let rows = self.weights(
            from: geometry.top,
            length: geometry.sourceHeight,
            count: geometry.height,
            of: self.source.count
        )
        let narrow = self.source.map { row in
            columns.map { $0.reduce(0) { $0 + row[$1.index] * $1.weight } }
        }
        return rows.map { weights in
            (0..<geometry.width).map { column in
                weights.reduce(0) { $0 + narrow[$1.index][column] * $1.weight }
            }
        }
    }

    private func weights(
        from start: Double,
        length: Double,
        count: Int,
        of size: Int
    ) -> [[(index: Int, weight: Double)]] {
        let step = length / Double(count)
        // The kernel is wider if the image becomes smaller.
        let width = max(1, step)
        return (0..<count).map { position in
            let center = start + (Double(position) + 0.5) * step
            // Pixels beyond an edge do not count.
            let first = max(0, Int((center - self.lobes * width).rounded(.down)))
            let last = min(Int((center + self.lobes * width).rounded(.up)), size - 1)
            let weights = (first...last).map { index in
                (index: index, weight: self.kernel((Double(index) + 0.5 - center) / width))
            }
            let sum = weights.reduce(0) { $0 + $1.weight }
            return weights.map { ($0.index, $0.weight / sum) }
        }
    }

    private func kernel(_ x: Double) -> Double {
        if x == 0 { return 1 }
        guard abs(x) < self.lobes else { return 0 }
        return sin(.pi * x) / (.pi * x) * sin(.pi * x / self.lobes) / (.pi * x / self.lobes)
    }
}
