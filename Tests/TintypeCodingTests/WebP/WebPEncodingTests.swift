// SPDX-License-Identifier: Apache-2.0

#if WebP
import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

@Suite(.computing, .timeLimit(.minutes(10))) struct WebPEncodingTests {
    private static func encode(_ pixels: PixelBuffer, _ options: EncodeOptions) throws -> Data {
        try WebPCoder().encode(Image(pixels: pixels), as: .webp, options: options)
    }

    private static func decode(_ data: Data) throws -> PixelBuffer {
        try ImageDecoder(data, registry: CoderRegistry(coders: [WebPCoder()])).decode().pixels
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], [(1, 1), (7, 1), (64, 33)])
    func `lossless keeps every pixel and hidden colours`(format: PixelFormat, size: (width: Int, height: Int)) throws {
        let pixels = try PixelBuffer.make(format, width: size.width, height: size.height) { column, row, channel in
            channel == 3 ? [0, 255, 90][column % 3] : UInt8(truncatingIfNeeded: column * 37 + row * 91 + channel * 50)
        }
        let decoded = try Self.decode(try Self.encode(pixels, EncodeOptions(compression: .lossless)))
        let samples = format == .gray8 ? try pixels.converted(to: .rgb8).samples : pixels.samples
        #expect(decoded.format == (format == .rgba8 && size.width > 0 ? .rgba8 : .rgb8))
        #expect(decoded.samples == samples)
    }

    @Test func `near lossless is smaller and stays close`() throws {
        let photograph = try SampleFiles.decode(try Fixtures.data("kodak-3.png")).pixels
        let cut = try PixelBuffer.make(.rgb8, width: 128, height: 128) {
            UInt8(clamping: photograph.sample($0 + 200, $1 + 200, $2))
        }
        let exact = try Self.encode(cut, EncodeOptions(compression: .lossless))
        let near = try Self.encode(cut, EncodeOptions(compression: .nearLossless(20)))
        let nothing = try Self.encode(cut, EncodeOptions(compression: .nearLossless(100)))
        #expect(near.count < exact.count)
        #expect(try Self.decode(nothing).samples == cut.samples)
        let differences = zip(try Self.decode(near).samples, cut.samples).map { abs(Int($0) - Int($1)) }
        #expect((1...16).contains(differences.max() ?? 0))
    }

    @Test func `more effort makes smaller files, and values out of range count as 0 or 6`() throws {
        let photograph = try SampleFiles.decode(try Fixtures.data("kodak-3.png")).pixels
        let sizes = try [-1, 0, 2, 4, 6, 7].map { try Self.encode(photograph, EncodeOptions(webpEffort: $0)).count }
        #expect(sizes == sizes.sorted(by: >))
        #expect(Set(sizes).count == 4)
        #expect(sizes[0] == sizes[1] && sizes[4] == sizes[5])
        #expect(try Self.encode(photograph, EncodeOptions()).count == sizes[3])
    }

    @Test func `the highest effort counts as 5 for an image with alpha`() throws {
        var generator = SeededGenerator(seed: 1)
        let pixels = try PixelBuffer.make(.rgba8, width: 64, height: 48) { _, _, _ in
            UInt8(truncatingIfNeeded: generator.next())
        }
        let sizes = try [4, 5, 6].map { try Self.encode(pixels, EncodeOptions(webpEffort: $0)).count }
        #expect(sizes[0] != sizes[1] && sizes[1] == sizes[2])
    }

    @Test func `metadata is written and read`() throws {
        let pixels = try PixelBuffer.smooth(.rgba8, width: 20, height: 10)
        let metadata = EncodeOptions.Metadata(
            exif: Data(SampleFiles.exif(orientation: 6)),
            xmp: Data("<x:xmpmeta/>".utf8),
            colorProfile: Data([1, 2, 3])
        )
        for compression in [EncodeOptions.Compression.lossy, .lossless] {
            let data = try Self.encode(pixels, EncodeOptions(compression: compression, metadata: metadata))
            let header = try WebPCoder().open(data).header
            #expect(header.orientation == .right)
            #expect(header.colorProfile == Data([1, 2, 3]))
            #expect(header.hasAlpha)
            #expect(data.firstRange(of: Data("<x:xmpmeta/>".utf8)) != nil)
            // The flags announce ICCP, EXIF, XMP and alpha.
            #expect(data[20] == 0x3C)
        }
        let plain = try Self.encode(pixels, EncodeOptions(compression: .lossless))
        #expect(try WebPCoder().open(plain).header.colorProfile == nil)
    }

    @Test func `the limit of bytes is kept`() throws {
        let pixels = try PixelBuffer.noise(.rgb8, width: 100, height: 100)
        let free = try Self.encode(pixels, EncodeOptions())
        let smallest = try Self.encode(pixels, EncodeOptions(quality: 1))
        #expect(try Self.encode(pixels, EncodeOptions(maximumByteCount: free.count)) == free)
        var last = 0
        for limit in stride(from: smallest.count, to: free.count, by: 1_000) {
            let data = try Self.encode(pixels, EncodeOptions(maximumByteCount: limit))
            #expect((last...limit).contains(data.count))
            last = data.count
        }
        for options in [
            EncodeOptions(maximumByteCount: smallest.count - 1),
            EncodeOptions(compression: .lossless, maximumByteCount: 1_000),
        ] {
            let error = #expect(throws: CodingError.self) { try Self.encode(pixels, options) }
            #expect(error?.code == .encodingFailed)
        }
    }

    @Test(arguments: [EncodeOptions.Compression.lossy, .lossless, .nearLossless(60)], [PixelFormat.rgb8, .rgba8])
    func `an animation comes back`(compression: EncodeOptions.Compression, format: PixelFormat) throws {
        let durations = [40, 10, 100, 2_000]
        let frames = try durations.indices.map { index in
            let pixels = try PixelBuffer.make(format, width: 40, height: 30) { column, row, channel in
                let isSpot = (column - 8 * index) / 8 == 0 && row < 20
                return channel == 3 ? (isSpot || row > 10 ? 255 : 0) : isSpot ? 220 : UInt8(row * 4)
            }
            return AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: durations[index])
        }
        let content = AnimationContent(frames: frames, loopCount: 3)
        let data = try WebPCoder().encode(
            content,
            as: .webp,
            options: EncodeOptions(quality: 90, compression: compression)
        )
        let decoder = try ImageDecoder(data, registry: CoderRegistry(coders: [WebPCoder()]))
        #expect(decoder.header.animation.loopCount == 3)
        #expect(decoder.header.animation.durations == [40, 100, 100, 2_000])
        #expect(decoder.header.hasAlpha == (format == .rgba8))
        for (index, frame) in frames.enumerated() {
            let decoded = try decoder.decode(options: DecodeOptions(frame: index)).pixels
            var worst = 0
            for row in 0..<30 {
                for column in 0..<40 {
                    let alpha = format == .rgba8 ? frame.image.pixels.sample(column, row, 3) : 255
                    #expect(decoded.sample(column, row, 3) == alpha)
                    guard alpha == 255 else { continue }
                    for channel in 0..<3 {
                        let difference =
                            decoded.sample(column, row, channel) - frame.image.pixels.sample(column, row, channel)
                        worst = max(worst, abs(difference))
                    }
                }
            }
            #expect(worst <= (compression == .lossy ? 90 : compression == .lossless ? 0 : 8), "frame \(index)")
        }
    }

    @Test func `durations and loop counts without room in the format become the largest ones`() throws {
        let frames = try (0..<200).map { number in
            let image = Image(pixels: try WebPSamples.flat([UInt8(number), 2, 3], width: 4, height: 4))
            return AnimationContent.Frame(image: image, milliseconds: 1 << 40)
        }
        let content = AnimationContent(frames: frames, loopCount: 1 << 40)
        let data = try WebPCoder().encode(content, as: .webp, options: EncodeOptions(compression: .lossless))
        let header = try ImageDecoder(data, registry: CoderRegistry(coders: [WebPCoder()])).header
        #expect(header.animation.loopCount == 65_535)
        #expect(header.animation.durations.first == (1 << 24) - 1)
    }

    @Test func `animations that can not be stored are refused`() throws {
        let small = Image(pixels: try .noise(.rgb8, width: 4, height: 4))
        let large = Image(pixels: try .noise(.rgb8, width: 5, height: 4))
        let wide = Image(pixels: try WebPSamples.flat([1, 2, 3], width: 16_384, height: 1))
        let contents = [
            AnimationContent(frames: []), AnimationContent(frames: [.init(image: wide, milliseconds: 20)]),
            AnimationContent(frames: [.init(image: small, milliseconds: 20), .init(image: large, milliseconds: 20)]),
            AnimationContent(frames: [.init(image: small, milliseconds: -1)]),
            AnimationContent(frames: [.init(image: small, milliseconds: 20)], loopCount: -1),
        ]
        for content in contents {
            let error = #expect(throws: CodingError.self) {
                try WebPCoder().encode(content, as: .webp, options: EncodeOptions())
            }
            #expect(error?.code == .encodingFailed)
        }
    }
}
#endif
