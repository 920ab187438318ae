// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@Suite(.computing) struct SharpeningTests {
    private static func luma(_ color: [Double]) -> Double {
        0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2]
    }

    /// Returns the straight samples of an unsharp mask with the exact blur.
    private static func sharpened(_ pixels: PixelBuffer, _ sharpen: Sharpen) -> [[Double]] {
        let soft = SlowBlur(pixels, .sRGB).blurred { exp(-0.5 * $0 * $0 / (sharpen.sigma * sharpen.sigma)) }.straight
        let channels = pixels.format.channelCount
        return (0..<pixels.height).map { row in
            let samples = pixels.row(row).map { Double($0) }
            return samples.indices.map { index in
                let (first, channel) = (index - index % channels, index % channels)
                guard channel < 3 else { return samples[index] }
                let isByLuma = sharpen.channels == .luma && channels > 1
                let difference =
                    isByLuma
                    ? Self.luma(Array(samples[first..<first + 3])) - Self.luma(Array(soft[row][first..<first + 3]))
                    : samples[index] - soft[row][index]
                guard abs(difference) >= sharpen.threshold else { return samples[index] }
                return min(max(samples[index] + sharpen.amount * difference, 0), 255)
            }
        }
    }

    @Test(arguments: Sharpen.Channels.allCases, [PixelFormat.gray8, .rgb8, .rgba8])
    func `An unsharp mask is within a level of the exact one`(
        channels: Sharpen.Channels,
        format: PixelFormat
    ) throws {
        let noise = try PixelBuffer.noise(format, width: 41, height: 23)
        // A level of colour counts too much if alpha is low, because the blur is divided by alpha.
        let pixels = try PixelBuffer.make(format, width: 41, height: 23) { column, row, channel in
            let sample = UInt8(noise.sample(column, row, channel))
            return channel == 3 ? max(sample, 40) : sample
        }
        for sharpen in [
            Sharpen(channels: channels), Sharpen(sigma: 3.5, amount: 0.6, channels: channels),
            Sharpen(sigma: 0.6, amount: 1.5, threshold: 0, channels: channels),
        ] {
            let result = try sharpen.transform(Image(pixels: pixels)).pixels
            let exact = Self.sharpened(pixels, sharpen)
            var largest = 0.0
            for (row, samples) in exact.enumerated() {
                for (found, sample) in zip(result.row(row), samples) {
                    largest = max(largest, abs(Double(found) - sample))
                }
            }
            #expect(largest <= 1, "\(sharpen)")
        }
    }

    @Test func `Under the threshold a pixel stays`() throws {
        let pixels = try PixelBuffer.make(.gray8, width: 40, height: 5) { column, _, _ in
            // A small step and a large one.
            column < 10 ? 100 : column < 25 ? 104 : 200
        }
        let result = try Sharpen(sigma: 2, amount: 1, threshold: 10).transform(Image(pixels: pixels)).pixels
        for column in 0..<18 { #expect(result.sample(column, 2) == pixels.sample(column, 2)) }
        #expect(result.sample(24, 2) < 80)
        #expect(result.sample(25, 2) > 220)
    }

    @Test(arguments: Sharpen.Channels.allCases) func `Red beside what cannot be seen stays as it is`(
        channels: Sharpen.Channels
    ) throws {
        let pixels = try PixelBuffer.make(.rgba8, width: 30, height: 5) { column, _, channel in
            column < 15 ? [220, 10, 10, 255][channel] : [0, 255, 0, 0][channel]
        }
        let result = try Sharpen(sigma: 2, amount: 2, channels: channels).transform(Image(pixels: pixels)).pixels
        for column in 0..<15 {
            #expect((0..<4).map { result.sample(column, 2, $0) } == [220, 10, 10, 255])
        }
        #expect(result.sample(16, 2, 3) == 0)
    }

    @Test func `Without an amount or a reach the image stays itself`() throws {
        let image = Image(pixels: try .noise(.rgb8, width: 5, height: 5))
        for sharpen in [Sharpen(amount: 0), Sharpen(sigma: 0)] {
            #expect(try sharpen.transform(image).pixels === image.pixels)
        }
        for wrong in [
            Sharpen(sigma: -1), Sharpen(sigma: .nan), Sharpen(amount: -1), Sharpen(amount: 101),
            Sharpen(threshold: 256), Sharpen(threshold: .nan),
        ] {
            #expect { try wrong.transform(image) } throws: { ($0 as? TransformError)?.code == .invalidParameter }
            #expect { try wrong.footprint(for: image.pixels.layout) } throws: {
                ($0 as? TransformError)?.code == .invalidParameter
            }
        }
    }

    @Test(.enabled(if: AllocatedMemory.isMeasured), arguments: Sharpen.Channels.allCases)
    func `It takes the memory that it says`(channels: Sharpen.Channels) throws {
        let image = Image(pixels: try .noise(.rgba8, width: 1500, height: 20))
        let sharpen = Sharpen(channels: channels)
        let footprint = try sharpen.footprint(for: image.pixels.layout)
        let (_, peak) = try AllocatedMemory.peak { try sharpen.transform(image) }
        #expect(peak - footprint.result.byteCount <= footprint.workingByteCount + 100_000)
    }

    @Test(arguments: [1, 2, 5, 13, 100], [PixelFormat.gray8, .rgb8, .rgba8])
    func `Blocks have the mean of their pixels, by alpha`(size: Int, format: PixelFormat) throws {
        let pixels = try PixelBuffer.noise(format, width: 31, height: 22)
        let pixelate = Pixelate(size: size)
        let result = try pixelate.transform(Image(pixels: pixels)).pixels
        guard size > 1 else {
            #expect(result === pixels)
            return
        }
        let channels = format.channelCount
        for top in stride(from: 0, to: 22, by: size) {
            for left in stride(from: 0, to: 31, by: size) {
                let block = (top..<min(top + size, 22)).flatMap { row in
                    (left..<min(left + size, 31)).map { (column: $0, row: row) }
                }
                let alphas = block.map { channels == 4 ? Double(pixels.sample($0.column, $0.row, 3)) : 255 }
                let alpha = alphas.reduce(0, +)
                let means = (0..<channels).map { channel in
                    if channel == 3 { return alpha / Double(block.count) }
                    let products = zip(block, alphas).map { Double(pixels.sample($0.column, $0.row, channel)) * $1 }
                    return products.reduce(0, +) / alpha
                }
                for (column, row) in block {
                    for (channel, mean) in means.enumerated() {
                        #expect(abs(Double(result.sample(column, row, channel)) - mean) <= 0.51)
                    }
                }
            }
        }
    }

    @Test func `Blocks that make no sense are refused`() throws {
        let image = Image(pixels: try .noise(.rgb8, width: 5, height: 5))
        for size in [0, -3, .min] {
            #expect { try Pixelate(size: size).transform(image) } throws: {
                ($0 as? TransformError)?.code == .invalidParameter
            }
        }
        let whole = try Pixelate(size: 5).transform(image).pixels
        #expect(try Pixelate(size: .max).transform(image).pixels.samples == whole.samples)
    }

    @Test func `Descriptions have defaults`() throws {
        #expect(try JSONDecoder().decode(Sharpen.self, from: Data("{}".utf8)) == Sharpen())
        let sharpen = Sharpen(sigma: 2, amount: 0.5, threshold: 3, channels: .all)
        #expect(try JSONDecoder().decode(Sharpen.self, from: JSONEncoder().encode(sharpen)) == sharpen)
        #expect(sharpen.key == "sharpen(2.0,0.5,3.0,all)")
        #expect(try JSONDecoder().decode(Pixelate.self, from: Data(#"{"size":8}"#.utf8)) == Pixelate(size: 8))
        #expect(Pixelate(size: 8).key == "pixelate(8)")
    }
}
