// SPDX-License-Identifier: Apache-2.0

package import TintypeCoding
import TintypeConcurrency
package import TintypeImage
import TintypeTestSupport

/// An animation with frames of noise that counts how often each frame was decoded.
package final class ScriptedFrames: FrameReader {
    package let canvas: PixelSize
    package let frames: [AnimationFrame]
    private let pixels: [PixelBuffer]
    private let counts = Locked<[Int: Int]>([:])

    package init(canvas: PixelSize, frames: [AnimationFrame], seed: UInt64 = 1) throws {
        self.canvas = canvas
        self.frames = frames
        self.pixels = try frames.enumerated().map { index, frame in
            var generator = SeededGenerator(seed: seed + UInt64(index))
            return try PixelBuffer.make(.rgba8, width: frame.width, height: frame.height) { _, _, channel in
                let value = UInt8(truncatingIfNeeded: generator.next())
                guard channel == 3 else { return value }
                // As in real files, most pixels are opaque or transparent.
                return frame.hasAlpha ? [0, 0, 255, 255, value][Int(value) % 5] : 255
            }
        }
    }

    /// The total number of decoded frames.
    package var decodeCount: Int { self.counts.withLock { $0.values.reduce(0, +) } }

    package func pixels(of index: Int) throws -> PixelBuffer {
        self.counts.withLock { $0[index, default: 0] += 1 }
        return self.pixels[index]
    }

    /// Returns every canvas, composited one after the other by the definition in floating point.
    package func slowCanvases() -> [[UInt8]] {
        typealias Pixel = (red: Double, green: Double, blue: Double, alpha: Double)
        let clear: Pixel = (0, 0, 0, 0)
        var canvas = Array(repeating: clear, count: self.canvas.width * self.canvas.height)
        var results: [[UInt8]] = []
        for (frame, pixels) in zip(self.frames, self.pixels) {
            let before = canvas
            var area: [Int] = []
            for row in 0..<frame.height {
                for column in 0..<frame.width {
                    let (x, y) = (frame.left + column, frame.top + row)
                    guard (0..<self.canvas.width).contains(x), (0..<self.canvas.height).contains(y) else { continue }
                    let index = y * self.canvas.width + x
                    area.append(index)
                    let top: Pixel = (
                        Double(pixels.sample(column, row, 0)), Double(pixels.sample(column, row, 1)),
                        Double(pixels.sample(column, row, 2)), Double(pixels.sample(column, row, 3)) / 255
                    )
                    canvas[index] = frame.blend == .source ? top : Self.over(top, canvas[index])
                }
            }
            results.append(
                canvas.flatMap { pixel in
                    [pixel.red, pixel.green, pixel.blue, pixel.alpha * 255].map { UInt8($0.rounded()) }
                }
            )
            for index in area {
                switch frame.disposal {
                case .keep: break
                case .background: canvas[index] = clear
                case .previous: canvas[index] = before[index]
                }
            }
        }
        return results
    }

    private static func over(
        _ top: (red: Double, green: Double, blue: Double, alpha: Double),
        _ bottom: (red: Double, green: Double, blue: Double, alpha: Double)
    ) -> (red: Double, green: Double, blue: Double, alpha: Double) {
        let alpha = top.alpha + bottom.alpha * (1 - top.alpha)
        guard alpha > 0 else { return bottom }
        func mix(_ top: Double, _ bottom: Double, _ topAlpha: Double, _ bottomAlpha: Double) -> Double {
            (top * topAlpha + bottom * bottomAlpha * (1 - topAlpha)) / alpha
        }
        return (
            mix(top.red, bottom.red, top.alpha, bottom.alpha),
            mix(top.green, bottom.green, top.alpha, bottom.alpha),
            mix(top.blue, bottom.blue, top.alpha, bottom.alpha), alpha
        )
    }
}
