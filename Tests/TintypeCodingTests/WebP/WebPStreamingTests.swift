// SPDX-License-Identifier: Apache-2.0

#if WebP
import FoundationEssentials
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Rows that are read one by one, and bytes that arrive in pieces.
@Suite(.computing, .timeLimit(.minutes(10))) struct WebPStreamingTests {
    static let kinds: [(EncodeOptions.Compression, PixelFormat)] = [
        (.lossy, .rgb8), (.lossy, .rgba8), (.lossless, .rgb8), (.lossless, .rgba8),
    ]

    private static func file(_ kind: (EncodeOptions.Compression, PixelFormat), noisy: Bool = true) throws -> Data {
        let pixels =
            noisy
            ? try PixelBuffer.noise(kind.1, width: 83, height: 130)
            : try PixelBuffer.smooth(kind.1, width: 700, height: 900)
        return try WebPCoder().encode(
            Image(pixels: pixels),
            as: .webp,
            options: EncodeOptions(quality: 60, compression: kind.0)
        )
    }

    @Test(arguments: Self.kinds, [nil, PixelSize(width: 300, height: 200), PixelSize(width: 41, height: 1)])
    func `rows are those of the whole image`(kind: (EncodeOptions.Compression, PixelFormat), size: PixelSize?) throws {
        for isNoisy in [false, true] {
            let data = try Self.file(kind, noisy: isNoisy)
            let encoded = try WebPCoder().open(data)
            let options = DecodeOptions(sufficientSize: size)
            let whole = try encoded.decode(options: options).image.pixels
            let rows = try #require(try WebPSamples.rows(of: data, options))
            #expect(rows.samples == whole.samples)
        }
    }

    @Test(arguments: Self.kinds) func `rows of a cut file end where it ends`(
        kind: (EncodeOptions.Compression, PixelFormat)
    ) throws {
        let data = try Self.file(kind)
        let whole = try WebPCoder().open(data).decode(options: DecodeOptions())
        for count in stride(from: 100, to: data.count, by: 1_999) {
            let cut = data.prefix(count)
            #expect(throws: CodingError.self) { try WebPSamples.rows(of: cut) }
            let options = DecodeOptions(allowsTruncated: true)
            guard let encoded = try? WebPCoder().open(cut) else { continue }
            let rows = try #require(try WebPSamples.rows(of: cut, options))
            #expect(
                rows.samples == (try encoded.decode(options: options).image.pixels.samples)
            )
            let matching = (0..<rows.height).prefix { rows.row($0) == whole.image.pixels.row($0) }.count
            #expect((matching..<rows.height).dropFirst().allSatisfy { rows.row($0).allSatisfy { $0 == 0 } })
        }
    }

    @Test(arguments: Self.kinds, [1, 7, 1_000]) func `what arrives is shown as far as it is known`(
        kind: (EncodeOptions.Compression, PixelFormat),
        step: Int
    ) throws {
        let data = try Self.file(kind)
        let whole = try WebPCoder().open(data).decode(options: DecodeOptions())
        let decoder = try #require(try WebPCoder().makeIncrementalDecoder(for: .webp, options: DecodeOptions()))
        var known = 0
        var previews = 0
        for start in stride(from: 0, to: data.count, by: step) {
            try decoder.append(data[start..<min(data.count, start + step)])
            guard let preview = try decoder.preview() else { continue }
            #expect(try decoder.preview() == nil)
            previews += 1
            let pixels = preview.pixels
            let matching = (0..<130).prefix { pixels.row($0) == whole.image.pixels.row($0) }.count
            #expect(matching > known)
            #expect((matching..<130).allSatisfy { pixels.row($0).allSatisfy { $0 == 0 } })
            known = matching
        }
        #expect(previews >= 6)
        #expect(known == 130)
        #expect(decoder.header?.pixelWidth == 83)
        #expect(try decoder.finish().image.pixels.samples == whole.image.pixels.samples)
    }

    @Test(arguments: Self.kinds) func `what does not arrive is an error unless allowed`(
        kind: (EncodeOptions.Compression, PixelFormat)
    ) throws {
        let data = try Self.file(kind)
        for count in stride(from: 0, to: data.count, by: 997) {
            let cut = data.prefix(count)
            let error = #expect(throws: CodingError.self) { try WebPSamples.decode([cut]) }
            #expect(error?.code == .truncated)
            let options = DecodeOptions(allowsTruncated: true)
            guard let encoded = try? WebPCoder().open(cut) else { continue }
            let arrived = try WebPSamples.decode([cut], options).image.pixels.samples
            #expect(arrived == (try encoded.decode(options: options).image.pixels.samples))
        }
    }

    @Test func `a size that suffices is decoded to`() throws {
        let data = try Self.file((.lossy, .rgb8), noisy: false)
        let options = DecodeOptions(sufficientSize: PixelSize(width: 100, height: 100))
        let whole = try WebPCoder().open(data).decode(options: options)
        let arrived = try WebPSamples.decode([data.prefix(3_000), data.dropFirst(3_000)], options)
        #expect((arrived.image.width, arrived.image.height) == (whole.image.width, whole.image.height))
        #expect(arrived.image.pixels.samples == whole.image.pixels.samples)
    }

    @Test func `another frame is there at the end`() throws {
        let frames = try [[255, 0, 0], [0, 255, 0]].map {
            AnimationContent.Frame(
                image: Image(pixels: try WebPSamples.flat($0, width: 9, height: 9)),
                milliseconds: 50
            )
        }
        let options = EncodeOptions(compression: .lossless)
        let data = try WebPCoder().encode(AnimationContent(frames: frames), as: .webp, options: options)
        let second = try WebPSamples.decode([data], DecodeOptions(frame: 1)).image.pixels
        #expect(second.samples.prefix(4) == [0, 255, 0, 255])
        #expect(try WebPSamples.decode([data]).image.pixels.samples.prefix(4) == [255, 0, 0, 255])
        let error = #expect(throws: CodingError.self) { try WebPSamples.decode([data], DecodeOptions(frame: 2)) }
        #expect(error?.code == .invalidOptions)
    }

    @Test func `too many bytes are refused as they arrive`() throws {
        let data = try Self.file((.lossy, .rgb8))
        let options = DecodeOptions(limits: DecodingLimits(maximumEncodedBytes: 500))
        let error = #expect(throws: CodingError.self) { try WebPSamples.decode([data.prefix(400), data], options) }
        #expect(error?.code == .tooManyBytes)
    }

    @Test func `a cancelled task decodes no more`() async throws {
        let data = try Self.file((.lossy, .rgb8))
        let task = Task {
            await until { Task.isCancelled }
            #expect(throws: CancellationError.self) { try WebPSamples.rows(of: data) }
            #expect(throws: CancellationError.self) { try WebPSamples.decode([data]) }
            #expect(throws: CancellationError.self) {
                try WebPCoder().encode(
                    AnimationContent(frames: [
                        .init(image: Image(pixels: try .noise(.rgb8, width: 9, height: 9)), milliseconds: 20)
                    ]),
                    as: .webp,
                    options: EncodeOptions()
                )
            }
        }
        task.cancel()
        await task.value
    }
}
#endif
