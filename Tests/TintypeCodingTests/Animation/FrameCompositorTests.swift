// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

@Suite(.computing) struct FrameCompositorTests {
    private static let disposals: [AnimationFrame.Disposal] = [.keep, .background, .previous]

    /// Returns a random animation, some of whose frames extend beyond the canvas.
    private static func animation(seed: UInt64) throws -> ScriptedFrames {
        var generator = SeededGenerator(seed: seed)
        let canvas = PixelSize(width: 13, height: 9)
        let frames = (0..<12).map { _ in
            let isWhole = generator.next() % 4 == 0
            return AnimationFrame(
                left: isWhole ? 0 : Int(generator.next() % 12) - 2,
                top: isWhole ? 0 : Int(generator.next() % 9) - 2,
                width: isWhole ? 13 : Int(generator.next() % 10) + 1,
                height: isWhole ? 9 : Int(generator.next() % 8) + 1,
                disposal: Self.disposals[Int(generator.next() % 3)],
                blend: generator.next() % 2 == 0 ? .source : .over,
                hasAlpha: generator.next() % 3 > 0
            )
        }
        return try ScriptedFrames(canvas: canvas, frames: frames, seed: seed)
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>) func `frames are composited by the definition`(seed: UInt64) throws
    {
        let animation = try Self.animation(seed: seed)
        let compositor = try FrameCompositor(animation)
        for (index, expected) in animation.slowCanvases().enumerated() {
            let frame = try compositor.frame(at: index).samples
            // Rounding may differ by one when pixels are blended, and the differences add up.
            let worst = zip(PixelBuffer.premultiplied(frame), PixelBuffer.premultiplied(expected))
                .map { abs($0 - $1) }.max()
            #expect(try #require(worst) <= 4, "frame \(index)")
        }
        #expect(animation.decodeCount == animation.frames.count)
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>) func `any order gives the same frames`(seed: UInt64) throws {
        let animation = try Self.animation(seed: seed)
        let forward = try FrameCompositor(animation)
        let frames = try animation.frames.indices.map { try forward.frame(at: $0).samples }
        var generator = SeededGenerator(seed: seed)
        let random = try FrameCompositor(animation)
        for index in animation.frames.indices.shuffled(using: &generator) + [0, 11, 5, 5] {
            #expect(try random.frame(at: index).samples == frames[index], "frame \(index)")
        }
    }

    @Test func `a key frame needs nothing before it`() throws {
        let whole = AnimationFrame(left: 0, top: 0, width: 4, height: 4, blend: .source)
        let part = AnimationFrame(left: 1, top: 1, width: 2, height: 2)
        let animation = try ScriptedFrames(
            canvas: PixelSize(width: 4, height: 4),
            frames: [part, part, whole, part, part]
        )
        _ = try FrameCompositor(animation).frame(at: 4)
        #expect(animation.decodeCount == 3)
    }

    @Test func `a failed frame leaves a good compositor`() throws {
        let broken = try BrokenFrames()
        let compositor = try FrameCompositor(broken)
        _ = try compositor.frame(at: 0)
        #expect(throws: CodingError.self) { try compositor.frame(at: 1) }
        #expect(try compositor.frame(at: 0).samples == [9, 9, 9, 255])
    }
}

/// An animation whose second frame cannot be decoded.
private struct BrokenFrames: FrameReader {
    let canvas = PixelSize(width: 1, height: 1)
    let frames = Array(repeating: AnimationFrame(left: 0, top: 0, width: 1, height: 1), count: 2)
    private let pixel: PixelBuffer

    init() throws {
        self.pixel = try PixelBuffer.make(.rgba8, width: 1, height: 1) { _, _, channel in channel == 3 ? 255 : 9 }
    }

    func pixels(of index: Int) throws -> PixelBuffer {
        guard index == 0 else { throw CodingError.truncated(.gif) }
        return self.pixel
    }
}
