// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeImage
import TintypeTestSupport
import TintypeTransforms

/// A rotation by its definition, in double precision, as the reference for the fast rotation.
struct SlowRotation {
    private let source: PixelBuffer
    private let rotate: Rotate
    private let size: (width: Int, height: Int)

    /// Creates a rotation of `source` to an image of the given size.
    init(_ rotate: Rotate, of source: PixelBuffer, width: Int, height: Int) {
        self.source = source
        self.rotate = rotate
        self.size = (width, height)
    }

    /// Returns a pixel with premultiplied colour, as four numbers from 0 to 255.
    func pixel(_ column: Int, _ row: Int) -> [Double] {
        let angle = self.rotate.degrees * .pi / 180
        let (right, down) = (
            Double(column) + 0.5 - Double(self.size.width) / 2, Double(row) + 0.5 - Double(self.size.height) / 2
        )
        let x = cos(angle) * right + sin(angle) * down + Double(self.source.width) / 2
        let y = cos(angle) * down - sin(angle) * right + Double(self.source.height) / 2
        let color = self.rotate.background
        let background = [color.red, color.green, color.blue, 255].map { Double($0) * Double(color.alpha) / 255 }
        if self.rotate.interpolation == .nearest {
            guard x >= 0, y >= 0, x < Double(self.source.width), y < Double(self.source.height) else {
                return background
            }
            return self.sample(Int(x), Int(y))
        }
        // Returns the share of a pixel's width, centred at a position, that lies in the image.
        func coverage(_ place: Double, _ length: Int) -> Double {
            min(max(min(place, Double(length) - place) + 0.5, 0), 1)
        }
        let share = coverage(x, self.source.width) * coverage(y, self.source.height)
        var sum = [0.0, 0, 0, 0]
        let (left, top) = ((x - 0.5).rounded(.down), (y - 0.5).rounded(.down))
        for line in -1...2 {
            for place in -1...2 {
                let weight = self.kernel(x - 0.5 - left - Double(place)) * self.kernel(y - 0.5 - top - Double(line))
                let sample = self.sample(Int(left) + place, Int(top) + line)
                for channel in 0..<4 { sum[channel] += weight * sample[channel] }
            }
        }
        sum = sum.map { max(0, $0) }
        if sum[3] > 255 { sum = sum.map { $0 * 255 / sum[3] } }
        sum = sum.map { min($0, sum[3]) }
        return zip(sum, background).map { $0 * share + $1 * (1 - share) }
    }

    private func kernel(_ distance: Double) -> Double {
        let x = abs(distance)
        if self.rotate.interpolation == .bilinear { return max(0, 1 - x) }
        if x < 1 { return 1.5 * x * x * x - 2.5 * x * x + 1 }
        return x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0
    }

    private func sample(_ column: Int, _ row: Int) -> [Double] {
        self.source.premultiplied(min(max(column, 0), self.source.width - 1), min(max(row, 0), self.source.height - 1))
    }
}

extension PixelBuffer {
    /// Returns a pixel as red, green, blue and alpha from 0 to 255, with colours multiplied by alpha.
    func premultiplied(_ column: Int, _ row: Int) -> [Double] {
        func sample(_ channel: Int) -> Double { Double(self.sample(column, row, channel)) }
        switch self.format {
        case .gray8: return [sample(0), sample(0), sample(0), 255]
        case .rgb8: return [sample(0), sample(1), sample(2), 255]
        default: return (0..<3).map { sample($0) * sample(3) / 255 } + [sample(3)]
        }
    }

    /// Returns the peak signal-to-noise ratio to the `expected` premultiplied samples, in decibels.
    func signalToNoise(_ expected: (_ column: Int, _ row: Int) -> [Double]) -> Double {
        var sum = 0.0
        for row in 0..<self.height {
            for column in 0..<self.width {
                for (sample, expected) in zip(self.premultiplied(column, row), expected(column, row)) {
                    sum += (sample - expected) * (sample - expected)
                }
            }
        }
        return 10 * log10(255 * 255 * Double(4 * self.width * self.height) / max(sum, 1e-9))
    }
}
