// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@Suite(.computing) struct LanczosAccuracyTests {
    @Test(arguments: [
        Resize.stretch(width: 40, height: 30), .stretch(width: 79, height: 59), .stretch(width: 160, height: 120),
        .stretch(width: 7, height: 5), .stretch(width: 33, height: 60), .stretch(width: 80, height: 11),
        .fill(width: 31, height: 31), .fill(width: 17, height: 40), .fit(width: 50, height: 50),
    ])
    func `is close to the slow reference`(resize: Resize) throws {
        var resize = resize
        resize.upscales = true
        for pixels in [
            try Self.mildNoise(width: 80, height: 60), try .smooth(.rgb8, width: 80, height: 60),
        ] {
            let geometry = try ResizeGeometry(resize, width: 80, height: 60)
            try Self.compare(pixels, geometry)
        }
    }

    @Test(arguments: [(0.31, 0.77), (0.5, 0.5), (1, 0.123)])
    func `reads parts that begin within a pixel`(across: Double, down: Double) throws {
        let pixels = try Self.mildNoise(width: 90, height: 70)
        // The decoder rounded the size of this image up, so its content ends within the last pixel.
        let geometry = try ResizeGeometry(.fill(width: 23, height: 29), width: 180, height: 140)
            .scaled(byWidth: (89 + across) / 180, height: (69 + down) / 140)
        try Self.compare(pixels, geometry)
    }

    @Test func `filters colour with its alpha`() throws {
        let pixels = try PixelBuffer.make(.rgba8, width: 60, height: 60) { column, row, channel in
            channel == 3 ? UInt8(min(255, 64 + column * 3)) : UInt8((column * 7 + row * 5 + channel * 40) % 200)
        }
        let geometry = try ResizeGeometry(.fit(width: 20, height: 20), width: 60, height: 60)
        let premultiplied = try PixelBuffer.make(.rgba8, width: 60, height: 60) { column, row, channel in
            let alpha = pixels.sample(column, row, 3)
            return UInt8(channel == 3 ? alpha : (pixels.sample(column, row, channel) * alpha + 127) / 255)
        }
        let alpha = SlowLanczos(premultiplied, channel: 3).resample(geometry)
        let result = try Image(pixels: pixels).resized(geometry, Resampling(filter: .lanczos3)).pixels
        for channel in 0..<3 {
            let color = SlowLanczos(premultiplied, channel: channel).resample(geometry)
            #expect(
                (0..<20).allSatisfy { row in
                    (0..<20).allSatisfy { column in
                        let expected = min(max(color[row][column] * 255 / alpha[row][column], 0), 255)
                        return abs(Double(result.sample(column, row, channel)) - expected) <= 4
                    }
                }
            )
        }
    }

    /// Returns noise that rings without reaching black or white, because each pass clips there.
    private static func mildNoise(width: Int, height: Int) throws -> PixelBuffer {
        var generator = SeededGenerator(seed: 3)
        return try .make(.gray8, width: width, height: height) { _, _, _ in
            UInt8.random(in: 80...176, using: &generator)
        }
    }

    private static func compare(_ pixels: PixelBuffer, _ geometry: ResizeGeometry) throws {
        let result = try Image(pixels: pixels).resized(geometry, Resampling(filter: .lanczos3)).pixels
        var largest = 0.0
        var sum = 0.0
        for channel in 0..<pixels.format.channelCount {
            let expected = SlowLanczos(pixels, channel: channel).resample(geometry)
            for row in 0..<geometry.height {
                for column in 0..<geometry.width {
                    let exact = min(max(expected[row][column], 0), 255)
                    let difference = abs(Double(result.sample(column, row, channel)) - exact)
                    largest = max(largest, difference)
                    sum += difference
                }
            }
        }
        let count = Double(geometry.width * geometry.height * pixels.format.channelCount)
        #expect(largest <= 1)
        #expect(sum / count <= 0.5)
    }
}
