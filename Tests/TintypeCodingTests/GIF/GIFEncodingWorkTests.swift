// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// The memory that encoding a GIF takes, and how often the encoder checks for cancellation.
@Suite(.computing, .timeLimit(.minutes(5))) struct GIFEncodingWorkTests {
    /// An image or an animation of many pixels.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let frames: @Sendable () throws -> [PixelBuffer]
        var options = EncodeOptions()

        func encode(_ frames: [PixelBuffer]) throws -> Data {
            let images = frames.map { Image(pixels: $0) }
            if images.count == 1 { return try GIFCoder().encode(images[0], as: .gif, options: self.options) }
            let content = AnimationContent(frames: images.map { .init(image: $0, milliseconds: 50) })
            return try GIFCoder().encode(content, as: .gif, options: self.options)
        }
    }

    /// Returns a pattern of two grays without repetition, which takes the most codes that exact pixels can take.
    private static func grains(_ format: PixelFormat, side: Int, seed: UInt64 = 1) throws -> PixelBuffer {
        var generator = SeededGenerator(seed: seed)
        return try .make(format, width: side, height: side) { _, _, _ in generator.next() & 1 == 0 ? 0 : 255 }
    }

    private static let cases = [
        Case(
            testDescription: "one gray",
            frames: { [try .make(.gray8, width: 1_500, height: 1_000) { _, _, _ in 7 }] }
        ),
        Case(testDescription: "all grays", frames: { [try .noise(.gray8, width: 1_500, height: 1_000)] }),
        Case(testDescription: "two grays", frames: { [try Self.grains(.gray8, side: 1_200)] }),
        Case(testDescription: "noise", frames: { [try .noise(.rgb8, width: 900, height: 700)] }),
        Case(testDescription: "transparent noise", frames: { [try .noise(.rgba8, width: 900, height: 700)] }),
        Case(
            testDescription: "noise without dithering",
            frames: { [try .noise(.rgb8, width: 900, height: 700)] },
            options: EncodeOptions(isDithered: false)
        ),
        Case(
            testDescription: "noise within a limit",
            frames: { [try .noise(.rgb8, width: 400, height: 300)] },
            options: EncodeOptions(maximumByteCount: 30_000)
        ),
        Case(testDescription: "one column", frames: { [try .noise(.rgb8, width: 1, height: 65_535)] }),
        Case(testDescription: "one row", frames: { [try .noise(.rgb8, width: 65_535, height: 1)] }),
        Case(
            testDescription: "frames of few colours",
            frames: { try (0..<4).map { try Self.grains(.gray8, side: 500, seed: $0) } }
        ),
        Case(
            testDescription: "frames of noise",
            frames: { try (0..<4).map { try .noise(.rgba8, width: 500, height: 400, seed: $0) } }
        ),
    ]

    @Test(.enabled(if: AllocatedMemory.isMeasured), arguments: Self.cases)
    func `an encode takes no more memory than its coder says, and little for each pixel`(_ example: Case) throws {
        let frames = try example.frames()
        let pixelCount = frames[0].width * frames[0].height
        let counted = GIFCoder().encodingByteCount(
            of: frames[0].layout,
            frameCount: frames.count > 1 ? frames.count : nil,
            as: .gif,
            options: example.options
        )
        let (data, taken) = try AllocatedMemory.peak { try example.encode(frames) }
        #expect(data.count <= taken)
        #expect(taken <= counted, "\(taken) of \(counted)")
        // The colour cube, tables and rows, then the codes of all frames and a second copy of one frame's codes.
        let fixed = 9 << 20
        #expect(counted <= fixed + pixelCount * 8 / 5 * (frames.count > 1 ? frames.count + 1 : 1))
    }

    /// Repeated codes of a single index take few bytes.
    @Test(.enabled(if: AllocatedMemory.isMeasured))
    func `the memory of a flat image does not grow with its height`() throws {
        func taken(height: Int) throws -> Int {
            let pixels = try PixelBuffer.make(.gray8, width: 2_000, height: height) { _, _, _ in 99 }
            return try AllocatedMemory.peak { try Self.encode(pixels) }.byteCount
        }
        let (low, high) = (try taken(height: 10), try taken(height: 2_000))
        #expect(high < low + 64 << 10, "\(low), \(high)")
    }

    private static let large = [
        Case(testDescription: "flat", frames: { [try .make(.rgb8, width: 2_000, height: 2_000) { _, _, _ in 7 }] }),
        Case(testDescription: "smooth", frames: { [try .smooth(.rgb8, width: 2_000, height: 2_000)] }),
        Case(testDescription: "wide", frames: { [try .noise(.gray8, width: 65_535, height: 60)] }),
        Case(testDescription: "high", frames: { [try .noise(.gray8, width: 60, height: 65_535)] }),
        Case(
            testDescription: "frames",
            frames: { try (0..<3).map { try .noise(.rgba8, width: 700, height: 700, seed: $0) } }
        ),
    ]

    @Test(arguments: Self.large) func `an encode looks often, and ends at the look that finds it cancelled`(
        _ example: Case
    ) async throws {
        let frames = try example.frames()
        let (looks, error) = DecodeWork.looks { _ = try example.encode(frames) }
        #expect(error == nil)
        #expect(looks.count >= 8)
        // Two steps are ten milliseconds.
        #expect(zip([0] + looks, looks).allSatisfy { $1 - $0 <= 2 * DecodeWork.unitsBetweenLooks })
        for last in [1, looks.count / 2, looks.count] {
            let task = Task { DecodeWork.looks(cancellingAt: last) { _ = try example.encode(frames) } }
            let (untilCancelled, cancellation) = await task.value
            #expect(cancellation is CancellationError)
            #expect(untilCancelled.count == last)
        }
    }

    private static func encode(_ pixels: PixelBuffer) throws -> Data {
        try GIFCoder().encode(Image(pixels: pixels), as: .gif, options: EncodeOptions())
    }
}
