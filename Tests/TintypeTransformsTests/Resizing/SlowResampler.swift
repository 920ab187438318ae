// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeImage
import TintypeTestSupport
import TintypeTransforms

/// Resampling by its definition, in double precision, as the reference for the fast resampling.
///
/// Each kernel is written as in its paper and covers all samples of a side, without spans, tables and passes.
struct SlowResampler {
    let filter: Resize.Filter
    let light: LightSpace

    /// The samples by row, column and channel, from 0 to 255, with colours multiplied by alpha.
    typealias Pixels = [[[Double]]]

    /// Returns the result of `geometry` for `pixels`, by row, column and channel.
    func resample(_ pixels: PixelBuffer, _ geometry: ResizeGeometry) -> Pixels {
        let columns = (0..<geometry.width).map {
            self.weights($0, geometry.width, geometry.left, geometry.sourceWidth, of: pixels.width)
        }
        let rows = (0..<geometry.height).map {
            self.weights($0, geometry.height, geometry.top, geometry.sourceHeight, of: pixels.height)
        }
        let source = self.premultiplied(pixels)
        let channels = pixels.format.channelCount
        return rows.map { row in
            var low = [[Double]](repeating: Array(repeating: 0, count: channels), count: pixels.width)
            for (y, weight) in row {
                for x in 0..<pixels.width {
                    for channel in 0..<channels { low[x][channel] += source[y][x][channel] * weight }
                }
            }
            return columns.map { column in
                var sums = [Double](repeating: 0, count: channels)
                for (x, weight) in column {
                    for channel in 0..<channels { sums[channel] += low[x][channel] * weight }
                }
                return self.finished(sums)
            }
        }
    }

    private func premultiplied(_ pixels: PixelBuffer) -> Pixels {
        (0..<pixels.height).map { y in
            (0..<pixels.width).map { x in
                let alpha = pixels.format.hasAlpha ? Double(pixels.sample(x, y, 3)) / 255 : 1
                return (0..<pixels.format.channelCount).map { channel in
                    channel == 3
                        ? alpha * 255 : self.brightness(Double(pixels.sample(x, y, channel)) / 255) * alpha * 255
                }
            }
        }
    }

    /// Clamps straight colour and multiplies it by the clamped alpha, which gives its visible part.
    private func finished(_ sums: [Double]) -> [Double] {
        guard sums.count == 4 else { return sums.map { self.stored(min(max($0 / 255, 0), 1)) * 255 } }
        let alpha = min(max(sums[3] / 255, 0), 1)
        guard sums[3] > 0 else { return [0, 0, 0, 0] }
        return sums[..<3].map { self.stored(min(max($0 / sums[3], 0), 1)) * alpha * 255 } + [alpha * 255]
    }

    /// Returns linear light by IEC 61966-2-1.
    private func brightness(_ value: Double) -> Double {
        guard self.light == .linear else { return value }
        return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }

    private func stored(_ light: Double) -> Double {
        guard self.light == .linear else { return light }
        return light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
    }

    private func weights(
        _ index: Int,
        _ count: Int,
        _ start: Double,
        _ length: Double,
        of size: Int
    ) -> [(index: Int, weight: Double)] {
        let step = length / Double(count)
        let width = max(1, step)
        let center = start + (Double(index) + 0.5) * step
        guard self.filter != .nearest else { return [(min(max(Int(center.rounded(.down)), 0), size - 1), 1)] }
        let reach = Int((4 * width).rounded(.up))
        let middle = Int(center)
        var weights: [(index: Int, weight: Double)] = []
        // Pixels beyond an edge do not count.
        for place in max(0, middle - reach)...min(middle + reach, size - 1) {
            let weight =
                self.filter == .box
                ? max(0, min(Double(place) + 1, center + width / 2) - max(Double(place), center - width / 2))
                : self.kernel(abs(Double(place) + 0.5 - center) / width)
            if weight != 0 { weights.append((place, weight)) }
        }
        let sum = weights.reduce(0) { $0 + $1.weight }
        return weights.map { ($0.index, $0.weight / sum) }
    }

    private func kernel(_ x: Double) -> Double {
        func sinc(_ x: Double) -> Double { x == 0 ? 1 : sin(.pi * x) / (.pi * x) }
        /// Returns a value of Mitchell and Netravali's family of cubics.
        func cubic(_ b: Double, _ c: Double) -> Double {
            if x < 1 {
                return ((12 - 9 * b - 6 * c) * pow(x, 3) + (-18 + 12 * b + 6 * c) * pow(x, 2) + (6 - 2 * b)) / 6
            }
            guard x < 2 else { return 0 }
            return ((-b - 6 * c) * pow(x, 3) + (6 * b + 30 * c) * pow(x, 2) + (-12 * b - 48 * c) * x + (8 * b + 24 * c))
                / 6
        }
        return switch self.filter {
        case .lanczos3: x < 3 ? sinc(x) * sinc(x / 3) : 0
        case .lanczos2: x < 2 ? sinc(x) * sinc(x / 2) : 0
        case .bicubic: cubic(0, 0.5)
        case .mitchell: cubic(1 / 3, 1 / 3)
        case .bilinear: max(0, 1 - x)
        case .box, .nearest: 0
        }
    }
}

extension PixelBuffer {
    /// Returns the peak signal-to-noise ratio to the reference, in decibels.
    ///
    /// Compares colours multiplied by alpha.
    func closeness(to reference: SlowResampler.Pixels) -> Double {
        let channels = self.format.channelCount
        var sum = 0.0
        for row in 0..<self.height {
            let samples = self.row(row)
            for column in 0..<self.width {
                let pixel = samples[column * channels..<(column + 1) * channels].map { Double($0) }
                for channel in 0..<channels {
                    let seen = channels == 4 && channel < 3 ? pixel[channel] * pixel[3] / 255 : pixel[channel]
                    sum += pow(seen - reference[row][column][channel], 2)
                }
            }
        }
        let error = sum / Double(self.width * self.height * channels)
        return error == 0 ? .infinity : 10 * log10(255 * 255 / error)
    }
}
