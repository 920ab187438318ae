// SPDX-License-Identifier: Apache-2.0

#if WebP
import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Files whose chunks are contradictory, missing or too many.
@Suite(.computing, .timeLimit(.minutes(10))) struct WebPContainerTests {
    private static let red: [UInt8] = [250, 10, 20]
    private static let clear: [UInt8] = [10, 20, 30, 0]

    private static func decode(_ data: Data, _ options: DecodeOptions = DecodeOptions()) throws -> Image {
        try ImageDecoder(data, registry: CoderRegistry(coders: [WebPCoder()]), limits: options.limits)
            .decode(options: options)
    }

    private static func still(_ color: [UInt8] = Self.red) throws -> [UInt8] {
        try WebPSamples.image(.make(color.count == 4 ? .rgba8 : .rgb8, width: 8, height: 6) { color[$2] })
    }

    private static func error(_ chunks: [[UInt8]], size: Int? = nil) -> CodingError? {
        do {
            _ = try self.decode(WebPSamples.file(chunks, size: size))
            return nil
        } catch {
            return error as? CodingError
        }
    }

    @Test(arguments: [UInt8(0), 0x10, 0x2C, 0x3C, 0xC1]) func `flags of a still may lie`(flags: UInt8) throws {
        let data = WebPSamples.file([WebPSamples.extended(flags, 8, 6), try Self.still()])
        let encoded = try WebPCoder().open(data)
        #expect(!encoded.header.hasAlpha)
        #expect(encoded.header.colorProfile == nil)
        #expect(try Self.decode(data).pixels.samples == [UInt8](repeating: 0, count: 48).flatMap { _ in Self.red })
    }

    @Test func `what breaks the format is an error`() throws {
        let still = try Self.still()
        let extended = WebPSamples.extended(0, 8, 6)
        let moving = WebPSamples.extended(2, 8, 6)
        let timing = WebPSamples.timing(loopCount: 0)
        let frame = WebPSamples.frame(still, width: 8, height: 6)
        #expect(Self.error([moving, timing, frame]) == nil)
        let broken: [[[UInt8]]] = [
            // An animation with a still, frames before their timing, no frames, frames without the flag.
            [moving, still], [moving, frame], [moving, timing], [extended, timing, frame], [timing, frame],
            // A canvas of another size, two canvases, two images, no image.
            [WebPSamples.extended(0, 9, 6), still], [extended, extended, still], [extended, still, still], [extended],
            [], [WebPSamples.chunk("JUNK", [1, 2, 3]), still],
            // Frames that differ in size from their image, extend over the edge, or have no image.
            [moving, timing, WebPSamples.frame(still, width: 7, height: 6)],
            [moving, timing, WebPSamples.frame(still, left: 2, width: 8, height: 6)],
            [moving, timing, WebPSamples.frame([], width: 8, height: 6)],
            [moving, timing, WebPSamples.frame(WebPSamples.chunk("JUNK", []) + still, width: 8, height: 6)],
            [moving, timing, WebPSamples.frame(Array(still.dropLast(4)), width: 8, height: 6)],
            [moving, timing, WebPSamples.chunk("ANMF", [1, 2, 3])], [moving, WebPSamples.chunk("ANIM", [0]), frame],
            [moving, timing, frame, still], [moving, timing, frame, Array("XMP \u{F}\0\0\0".utf8)],
            [WebPSamples.chunk("VP8X", [0, 0]), still], [WebPSamples.chunk("VP8L", [1, 2, 3, 4, 5, 6, 7])],
            [WebPSamples.chunk("VP8 ", [UInt8](repeating: 0, count: 30))],
        ]
        for (index, chunks) in broken.enumerated() {
            #expect(Self.error(chunks)?.code == .corrupt, "\(index)")
        }
    }

    @Test func `sizes of the file may be wrong`() throws {
        let still = try Self.still()
        let right = 4 + still.count
        #expect(Self.error([still], size: right)?.code == nil)
        #expect(Self.error([still], size: right + 2)?.code == .truncated)
        #expect(Self.error([still], size: 0)?.code == .corrupt)
        #expect(Self.error([still], size: right - 10)?.code == .corrupt)
        #expect(Self.error([still, [1, 2, 3, 4, 5, 6, 7, 8, 9]], size: right) == nil)
        // A part of a chunk's header may follow the image.
        #expect(Self.error([still, [1, 2, 3]]) == nil)
    }

    @Test func `chunks that nobody knows are skipped`() throws {
        let junk = WebPSamples.chunk("JUNK", [1, 2, 3, 4, 5])
        let exif = WebPSamples.chunk("EXIF", SampleFiles.exif(orientation: 6))
        let later = WebPSamples.chunk("EXIF", SampleFiles.exif(orientation: 3))
        let profile = WebPSamples.chunk("ICCP", [9, 8, 7])
        let data = WebPSamples.file([
            WebPSamples.extended(0, 8, 6), junk, profile, junk, try Self.still(), junk, exif, later,
            WebPSamples.chunk("XMP ", Array("<x/>".utf8)),
        ])
        let encoded = try WebPCoder().open(data)
        #expect(encoded.header.orientation == .right)
        #expect(encoded.header.colorProfile == Data([9, 8, 7]))
        #expect(try Self.decode(data).width == 6)
    }

    @Test(
        arguments: [
            // The first frame is opaque, has alpha, or does not cover the canvas. Or it is cleared before a second
            // frame that covers its area, or one that does not.
            ([(0, 0, 8, 6, 0, false)], false), ([(0, 0, 8, 6, 0, true)], true), ([(0, 0, 4, 6, 0, false)], true),
            ([(0, 0, 8, 6, 1, false), (0, 0, 8, 6, 0, false)], false),
            ([(0, 0, 8, 6, 1, false), (0, 0, 4, 6, 0, false)], true),
            // Blend alpha over opaque pixels, or replace them with it.
            ([(0, 0, 8, 6, 0, false), (2, 2, 4, 4, 0, true)], false),
            ([(0, 0, 8, 6, 0, false), (2, 2, 4, 4, 2, true)], true),
        ] as [([(Int, Int, Int, Int, UInt8, Bool)], Bool)]
    )
    func `an animation is transparent where any frame lets through`(
        frames: [(left: Int, top: Int, width: Int, height: Int, flags: UInt8, hasAlpha: Bool)],
        expected: Bool
    ) throws {
        let chunks = try frames.map { frame in
            let color = frame.hasAlpha ? Self.clear : Self.red
            let pixels = try WebPSamples.flat(color, width: frame.width, height: frame.height)
            return WebPSamples.frame(
                try WebPSamples.image(pixels),
                left: frame.left,
                top: frame.top,
                width: frame.width,
                height: frame.height,
                milliseconds: 5,
                flags: frame.flags
            )
        }
        let data = WebPSamples.file(
            [WebPSamples.extended(0x12, 8, 6), WebPSamples.timing(loopCount: 7)] + chunks
        )
        let decoder = try ImageDecoder(data, registry: CoderRegistry(coders: [WebPCoder()]))
        #expect(decoder.header.hasAlpha == expected)
        #expect(decoder.header.animation.loopCount == 7)
        #expect(decoder.header.animation.durations == frames.map { _ in 100 })
        let compositor = try FrameCompositor(try #require(try decoder.frameReader()))
        let seen = try frames.indices.map { Image(pixels: try compositor.frame(at: $0)).hasTransparency }
        #expect(seen.contains(true) == expected)
        // The decoder composites a single frame as well.
        #expect(try decoder.decode().pixels.samples == (try compositor.frame(at: 0)).samples)
    }

    @Test func `a cut animation keeps the frames that are there`() throws {
        let colors: [[UInt8]] = [[255, 0, 0], [0, 255, 0], [0, 0, 255]]
        let frames = try colors.map { WebPSamples.frame(try Self.still($0), width: 8, height: 6) }
        let file = WebPSamples.file([WebPSamples.extended(2, 8, 6), WebPSamples.timing(loopCount: 0)] + frames)
        let cut = file.prefix(file.count - frames[2].count)
        #expect(throws: CodingError.self) { try Self.decode(cut) }
        let options = DecodeOptions(allowsTruncated: true, frame: 1)
        #expect(try Self.decode(cut, options).pixels.samples.prefix(4) == [0, 255, 0, 255])
        #expect(try WebPCoder().open(cut).header.animation.durations.count == 2)
        for count in 0..<file.count {
            let part = file.prefix(count)
            let error = #expect(throws: CodingError.self) { try Self.decode(part) }
            if count >= 12 { #expect(error?.code == .truncated, "\(count) bytes: \(error?.message ?? "")") }
            guard let encoded = try? WebPCoder().open(part) else { continue }
            for frame in 0..<encoded.header.animation.frameCount {
                let image = try Self.decode(part, DecodeOptions(allowsTruncated: true, frame: frame))
                #expect((image.width, image.height) == (8, 6))
            }
        }
    }

    /// The time limit ends the test if each chunk costs as much as all chunks before it.
    @Test func `a flood of chunks is read once`() throws {
        let flood = [UInt8](repeating: 0, count: 8 << 20)
        let still = WebPSamples.file([WebPSamples.extended(0, 8, 6), try Self.still(), flood])
        #expect(try Self.decode(still).width == 8)
        let frame = WebPSamples.frame(try Self.still(), width: 8, height: 6)
        let frames = [UInt8]([[UInt8]](repeating: frame, count: 20_000).joined())
        let moving = WebPSamples.file([WebPSamples.extended(2, 8, 6), WebPSamples.timing(loopCount: 0), frames])
        let limits = DecodingLimits(maximumFrames: 20_000)
        let decoder = WebPIncrementalDecoder(options: DecodeOptions(limits: limits))
        for start in stride(from: 0, to: moving.count, by: 200) {
            try decoder.append(moving[start..<min(moving.count, start + 200)])
        }
        #expect(try decoder.finish().image.width == 8)
        #expect(decoder.header?.animation.frameCount == 20_000)
    }

    @Test func `a canvas over the limit is refused`() throws {
        let still = try Self.still()
        let frame = WebPSamples.frame(still, width: 8, height: 6)
        let data = WebPSamples.file([
            WebPSamples.extended(2, 1 << 16, (1 << 16) - 1), WebPSamples.timing(loopCount: 0), frame,
        ])
        let error = #expect(throws: CodingError.self) { try Self.decode(data) }
        #expect(error?.code == .sideTooLong)
        let decoder = WebPIncrementalDecoder(options: DecodeOptions())
        #expect(throws: CodingError.self) { try decoder.append(data) }
        #expect(decoder.header == nil)
        #expect(throws: CodingError.self) { try decoder.finish() }
    }

    /// Includes files of the corpus that break decoders.
    @Test func `what broke once breaks no more`() throws {
        let files = try CrashFiles.named("webp-").map { try Data(contentsOf: $0) }
        let damaged = Corpus.isRead ? try Corpus.images(in: "webp-corrupt").map { try $0.data } : []
        for data in files + damaged {
            for allowsTruncated in [false, true] {
                let options = DecodeOptions(
                    limits: DecodingLimits(maximumPixels: 250_000),
                    allowsTruncated: allowsTruncated
                )
                let whole = try? Self.decode(data, options).pixels.samples
                var generator = SeededGenerator(seed: 9)
                let pieces = WebPSamples.pieces(of: data, upTo: 40, using: &generator)
                let arrived = try? WebPSamples.decode(pieces, options).image.upright().pixels.samples
                if !allowsTruncated { #expect(arrived == whole) }
                if let whole { #expect(!whole.isEmpty) }
            }
        }
    }
}
#endif
