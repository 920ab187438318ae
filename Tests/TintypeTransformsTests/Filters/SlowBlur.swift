// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeImage
import TintypeTestSupport
import TintypeTransforms

/// A blur by its definition, in double precision and with extended borders, as the reference for the fast blur.
struct SlowBlur {
    private let format: PixelFormat
    private let light: LightSpace
    /// The rows of premultiplied samples.
    private let rows: [[Double]]

    init(_ pixels: PixelBuffer, _ light: LightSpace) {
        self.format = pixels.format
        self.light = light
        let channels = pixels.format.channelCount
        self.rows = (0..<pixels.height).map { row in
            let samples = pixels.row(row).map { Double($0) }
            return samples.indices.map { index in
                guard channels == 4 else { return Self.lit(samples[index], light) }
                let alpha = samples[index - index % 4 + 3]
                return index % 4 == 3 ? alpha : Self.lit(samples[index], light) * alpha / 255
            }
        }
    }

    private init(_ other: SlowBlur, rows: [[Double]]) {
        self.format = other.format
        self.light = other.light
        self.rows = rows
    }

    /// Returns the image blurred with a kernel that depends on the distance in each direction.
    func blurred(_ kernel: (Double) -> Double) -> SlowBlur {
        let channels = self.format.channelCount
        let (width, height) = (self.rows[0].count / channels, self.rows.count)
        let down = Self.weights(kernel, height)
        let across = Self.weights(kernel, width)
        let columns = down.map { weights in
            var sums = [Double](repeating: 0, count: width * channels)
            for (row, weight) in weights {
                let source = self.rows[row]
                for index in sums.indices { sums[index] += weight * source[index] }
            }
            return sums
        }
        return SlowBlur(
            self,
            rows: columns.map { row in
                var sums = [Double](repeating: 0, count: row.count)
                for (column, weights) in across.enumerated() {
                    for (source, weight) in weights {
                        for channel in 0..<channels {
                            sums[column * channels + channel] += weight * row[source * channels + channel]
                        }
                    }
                }
                return sums
            }
        )
    }

    /// Returns the contributing positions and their weights for each position of a side.
    ///
    /// Positions beyond an end count for the end.
    private static func weights(_ kernel: (Double) -> Double, _ count: Int) -> [[(Int, Double)]] {
        let reach = 10_000
        var end = 0
        while end < reach, kernel(Double(end + 1)) > 1e-9 { end += 1 }
        let values = (0...end).map { kernel(Double($0)) }
        let total = 2 * values.reduce(0, +) - values[0]
        return (0..<count).map { place in
            let first = max(place - end, 0)
            var weights = [Double](repeating: 0, count: min(place + end, count - 1) - first + 1)
            for offset in -end...end {
                weights[min(max(place + offset, 0), count - 1) - first] += values[abs(offset)] / total
            }
            return weights.enumerated().map { (first + $0.offset, $0.element) }
        }
    }

    /// The rows with colours divided by alpha.
    var straight: [[Double]] {
        guard self.format == .rgba8 else { return self.rows }
        return self.rows.map { row in
            row.indices.map { index in
                let alpha = row[index - index % 4 + 3]
                return index % 4 == 3 || alpha == 0 ? row[index] : row[index] / alpha * 255
            }
        }
    }

    /// Returns the largest difference between a sample and the exact value.
    ///
    /// Compares the visible part of colours, because a level of colour means little if alpha is low.
    func largestDifference(to pixels: PixelBuffer) -> Double {
        let channels = self.format.channelCount
        guard pixels.format == self.format, pixels.height == self.rows.count else { return .infinity }
        var largest = 0.0
        for (index, row) in self.rows.enumerated() {
            let samples = pixels.row(index).map { Double($0) }
            for place in row.indices {
                guard channels == 4, place % 4 < 3 else {
                    let exact = channels == 4 ? row[place] : Self.stored(row[place], self.light)
                    largest = max(largest, abs(samples[place] - exact))
                    continue
                }
                let alpha = row[place - place % 4 + 3]
                guard alpha >= 0.51 else { continue }
                let exact = Self.stored(row[place] / alpha * 255, self.light)
                // Half a level is due to rounding.
                largest = max(largest, 0.5 + (abs(samples[place] - exact) - 0.5) * alpha / 255)
            }
        }
        return largest
    }

    private static func lit(_ sample: Double, _ light: LightSpace) -> Double {
        guard light == .linear else { return sample }
        let value = sample / 255
        return 255 * (value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4))
    }

    private static func stored(_ number: Double, _ light: LightSpace) -> Double {
        guard light == .linear else { return number }
        let value = number / 255
        return 255 * (value <= 0.003_130_8 ? value * 12.92 : 1.055 * pow(value, 1 / 2.4) - 0.055)
    }
}
