// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@Suite(.computing, .timeLimit(.minutes(5))) struct PNGEncodingTests {
    private static func encode(_ pixels: PixelBuffer, _ options: EncodeOptions = EncodeOptions()) throws -> Data {
        try PNGCoder().encode(Image(pixels: pixels), as: .png, options: options)
    }

    private static func decode(_ data: Data) throws -> PixelBuffer {
        let reference = try #require(PNGReference.samples(of: PNGReference.still(data)))
        let pixels = try SampleFiles.decode(data).pixels
        // libspng must read our file as we do.
        #expect(PNGReference.expanded(pixels) == reference)
        return pixels
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], [1, 2, 3, 4, 5, 16, 17, 255, 256, 257])
    func `every number of colors is kept`(format: PixelFormat, count: Int) throws {
        let pixels = try PixelBuffer.make(format, width: 61, height: 47) { column, row, channel in
            let color = (row * 61 + column) % count
            return UInt8(truncatingIfNeeded: channel == 0 ? color : color / 256 * 90 + color * channel * 3)
        }
        let decoded = try Self.decode(try Self.encode(pixels))
        #expect(decoded.format == format)
        #expect(decoded.samples == pixels.samples)
    }

    @Test(arguments: [(2, 1), (3, 2), (4, 2), (5, 4), (16, 4), (17, 8), (256, 8)])
    func `few colors take few bits`(count: Int, bits: Int) throws {
        let pixels = try PixelBuffer.make(.rgb8, width: 64, height: 64) { column, row, channel in
            UInt8(truncatingIfNeeded: (row * 64 + column) % count &* 37 &+ channel)
        }
        let data = try Self.encode(pixels)
        #expect(try PNGCoder().open(data).header.bitDepth == bits)
        #expect(PNGFile(data).chunks.map(\.type) == ["IHDR", "PLTE", "IDAT", "IEND"])
    }

    @Test(arguments: [([0, 255], 1), ([0, 85, 170], 2), ([17, 34], 4), ([0, 1], 8)] as [([UInt8], Int)])
    func `gray takes the fewest bits that hold it`(grays: [UInt8], bits: Int) throws {
        let pixels = try PixelBuffer.make(.gray8, width: 33, height: 9) { column, row, _ in
            grays[(column + row) % grays.count]
        }
        let data = try Self.encode(pixels)
        #expect(try PNGCoder().open(data).header.bitDepth == bits)
        let decoded = try Self.decode(data)
        #expect(decoded.format == .gray8)
        #expect(decoded.samples == pixels.samples)
    }

    /// A palette would hide that the format has alpha.
    @Test func `opaque pixels with alpha keep their format`() throws {
        let pixels = try PixelBuffer.make(.rgba8, width: 40, height: 40) { column, _, channel in
            channel == 3 ? 255 : UInt8(column)
        }
        let decoded = try Self.decode(try Self.encode(pixels))
        #expect(decoded.format == .rgba8)
        #expect(decoded.samples == pixels.samples)
    }

    @Test(arguments: -1...10, [EncodeOptions.PNGFilter.automatic, .none, .all])
    func `every level and filter keeps every pixel`(level: Int, filter: EncodeOptions.PNGFilter) throws {
        let pixels = try PixelBuffer.smooth(.rgba8, width: 67, height: 31)
        let data = try Self.encode(pixels, EncodeOptions(pngLevel: level, pngFilter: filter))
        #expect(try Self.decode(data).samples == pixels.samples)
    }

    /// Some strips end within lines and some lines within strips, and some lines are longer than deflate's window.
    @Test(
        arguments: [(7, 9_000), (300, 400), (12_000, 9), (30_001, 4), (32_768, 3)] as [(width: Int, height: Int)],
        [1, 2, 3, 6, 9]
    )
    func `images of every shape are kept`(size: (width: Int, height: Int), level: Int) throws {
        var generator = SeededGenerator(seed: UInt64(size.width))
        let noise = (0..<4_096).map { _ in UInt8.random(in: 0...255, using: &generator) }
        for format in [PixelFormat.gray8, .rgb8, .rgba8] {
            // Mix flat parts, gradients, repeats and noise.
            let pixels = try PixelBuffer.make(format, width: size.width, height: size.height) { column, row, channel in
                let block = column / 50 + row / 7
                return switch block % 4 {
                case 0: UInt8(truncatingIfNeeded: block)
                case 1: UInt8(truncatingIfNeeded: column &* 3 &+ row &+ channel)
                case 2: noise[column % 37]
                default: noise[(column &* 5 &+ row &* 911 &+ channel &* 17) % noise.count]
                }
            }
            let data = try Self.encode(pixels, EncodeOptions(pngLevel: level))
            #expect(try Self.decode(data).samples == pixels.samples)
            #expect(PNGFile(data).chunks.map(\.type) == ["IHDR", "IDAT", "IEND"])
        }
    }

    @Test func `more effort makes a photograph smaller`() throws {
        let photograph = try SampleFiles.decode(try Fixtures.data("kodak-3.png")).pixels
        let sizes = try (0...9).map { level in
            try Self.encode(photograph, EncodeOptions(pngLevel: level)).count
        }
        #expect(sizes == sizes.sorted(by: >))
        // zlib-ng at level 9, with a filter chosen for each row, takes 540,261 bytes, and oxipng takes 502,888.
        #expect(sizes[6] < 515_000 && sizes[9] < 495_000)
    }

    /// The gray lines, flat areas and photographs of one image have codes of their own.
    @Test func `parts that differ are coded by themselves`() throws {
        var generator = SeededGenerator(seed: 3)
        func encodedCount(of rows: Range<Int>) throws -> Int {
            let pixels = try PixelBuffer.make(.rgb8, width: 200, height: rows.count) { _, row, _ in
                rows.lowerBound + row < 100
                    ? UInt8.random(in: 0..<8, using: &generator) : UInt8.random(in: 100..<116, using: &generator)
            }
            return try Self.encode(pixels, EncodeOptions(pngFilter: .none)).count
        }
        #expect(try encodedCount(of: 0..<200) < encodedCount(of: 0..<100) + encodedCount(of: 100..<200) + 1_000)
    }

    @Test(arguments: [0, 1, 6, 9]) func `an encode looks at each strip, and ends at the look that finds it cancelled`(
        level: Int
    ) async throws {
        let photograph = try SampleFiles.decode(try Fixtures.data("kodak-3.png")).pixels
        let options = EncodeOptions(pngLevel: level)
        let (looks, error) = DecodeWork.looks { _ = try Self.encode(photograph, options) }
        #expect(error == nil)
        // Strips have 64 KiB of the filtered rows, and a sample of the rows chooses the filter.
        #expect(looks.count >= 768 * 512 * 3 / (64 << 10))
        for last in [1, looks.count / 2, looks.count] {
            let task = Task { DecodeWork.looks(cancellingAt: last) { _ = try Self.encode(photograph, options) } }
            let (untilCancelled, cancellation) = await task.value
            #expect(cancellation is CancellationError)
            #expect(untilCancelled.count == last)
        }
    }

    @Test func `filters help photographs`() throws {
        let photograph = try SampleFiles.decode(try Fixtures.data("kodak-3.png")).pixels
        let plain = try Self.encode(photograph, EncodeOptions(pngFilter: .none))
        let filtered = try Self.encode(photograph)
        #expect(filtered.count < plain.count)
        #expect(try Self.encode(photograph, EncodeOptions(pngLevel: 1)).count > filtered.count)
    }

    @Test func `a limit of bytes is met by more effort`() throws {
        let photograph = try SampleFiles.decode(try Fixtures.data("kodak-3.png")).pixels
        let hasty = EncodeOptions(pngLevel: 1, pngFilter: .none)
        let limit = try Self.encode(photograph, EncodeOptions(pngLevel: 9)).count
        #expect(try Self.encode(photograph, hasty).count > limit)
        var options = hasty
        options.maximumByteCount = limit
        let data = try Self.encode(photograph, options)
        #expect(data.count <= limit)
        #expect(try Self.decode(data).samples == photograph.samples)
        options.maximumByteCount = try Self.encode(photograph, hasty).count
        #expect(try Self.encode(photograph, options) == (try Self.encode(photograph, hasty)))
    }

    @Test func `what does not fit a limit of bytes is refused`() throws {
        let options = EncodeOptions(maximumByteCount: 90)
        let error = #expect(throws: CodingError.self) {
            try Self.encode(try .smooth(.rgb8, width: 60, height: 60), options)
        }
        #expect(error?.code == .encodingFailed)
        let animation = try Self.animation(.rgb8, count: 3)
        let error2 = #expect(throws: CodingError.self) {
            try PNGCoder().encode(animation, as: .png, options: options)
        }
        #expect(error2?.code == .encodingFailed)
        #expect(error2?.message.contains("of 90") == true)
    }

    @Test func `metadata is written`() throws {
        let profile = Data([0, 0, 0, 200] + [UInt8](repeating: 7, count: 196))
        let metadata = EncodeOptions.Metadata(
            exif: Data(SampleFiles.exif(orientation: 6)),
            xmp: Data("<x:xmpmeta/>".utf8),
            colorProfile: profile
        )
        let data = try Self.encode(try .smooth(.rgb8, width: 30, height: 20), EncodeOptions(metadata: metadata))
        let encoded = try PNGCoder().open(data)
        #expect(encoded.header.orientation == .right)
        #expect(encoded.header.colorProfile == profile)
        let text = try #require(PNGFile(data).chunks.first { $0.type == "iTXt" })
        #expect(text.body == Array("XML:com.adobe.xmp\0\0\0\0\0<x:xmpmeta/>".utf8))
        #expect(PNGReference.samples(of: data) != nil)
    }

    // MARK: Animations

    private static func animation(_ format: PixelFormat, count: Int) throws -> AnimationContent {
        let frames = try (0..<count).map { index in
            let pixels = try PixelBuffer.make(format, width: 50, height: 40) { column, row, channel in
                let isInside = (5 * index..<5 * index + 10).contains(column) && (3..<20).contains(row)
                let value = UInt8(truncatingIfNeeded: column * 3 &+ row * 5 &+ channel * 40)
                return isInside ? value ^ UInt8(index * 30) : value
            }
            return AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: 40 + index)
        }
        return AnimationContent(frames: frames, loopCount: 3)
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], [1, 2, 7])
    func `an animation keeps its frames`(format: PixelFormat, count: Int) throws {
        let animation = try Self.animation(format, count: count)
        let data = try PNGCoder().encode(animation, as: .png, options: EncodeOptions())
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        #expect(decoder.header.animation.loopCount == 3)
        #expect(decoder.header.animation.durations == (count == 1 ? [] : (0..<count).map { 40 + $0 }))
        for (index, frame) in animation.frames.enumerated() {
            let decoded = try decoder.decode(options: DecodeOptions(frame: index)).pixels
            #expect(PNGReference.expanded(decoded) == PNGReference.expanded(frame.image.pixels), "frame \(index)")
        }
        #expect(PNGReference.samples(of: PNGReference.still(data)) != nil)
    }

    @Test func `only what changed is written`() throws {
        let animation = try Self.animation(.rgb8, count: 3)
        let data = try PNGCoder().encode(animation, as: .png, options: EncodeOptions())
        let encoded = try PNGCoder().open(data)
        let reader = try #require(try encoded.frameReader(options: DecodeOptions()))
        #expect(reader.frames.map(\.width) == [50, 10, 15])
        #expect(reader.frames.map(\.height) == [40, 17, 17])
        #expect(reader.frames.map(\.left) == [0, 5, 5])
    }

    @Test func `a frame that changes nothing is kept`() throws {
        var animation = try Self.animation(.rgba8, count: 2)
        animation.frames.insert(animation.frames[0], at: 1)
        let data = try PNGCoder().encode(animation, as: .png, options: EncodeOptions())
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        #expect(decoder.header.animation.frameCount == 3)
        let frames = try (0..<3).map { try decoder.decode(options: DecodeOptions(frame: $0)).pixels.samples }
        #expect(frames[0] == frames[1])
        #expect(frames[1] != frames[2])
    }

    @Test(arguments: [(0, 100), (65_535, 65_535), (65_536, 65_530), (700_000, 700_000), (.max, 65_535_000)])
    func `long durations are kept as far as they go`(given: Int, stored: Int) throws {
        var animation = try Self.animation(.gray8, count: 2)
        animation.frames[1].milliseconds = given
        let data = try PNGCoder().encode(animation, as: .png, options: EncodeOptions())
        #expect(try PNGCoder().open(data).header.animation.durations[1] == stored)
    }

    @Test func `an animation meets a limit of bytes`() throws {
        let animation = try Self.animation(.rgba8, count: 5)
        let limit = try PNGCoder().encode(animation, as: .png, options: EncodeOptions(pngLevel: 9)).count
        let hasty = try PNGCoder().encode(animation, as: .png, options: EncodeOptions(pngLevel: 0))
        #expect(hasty.count > limit)
        let options = EncodeOptions(pngLevel: 0, maximumByteCount: limit)
        #expect(try PNGCoder().encode(animation, as: .png, options: options).count <= limit)
    }

    /// libpng and browsers animate such a file.
    @Test func `the first frame may be described before the animation`() throws {
        let data = try PNGCoder().encode(try Self.animation(.rgb8, count: 3), as: .png, options: EncodeOptions())
        var file = PNGFile(data)
        let control = try #require(file.chunks.firstIndex { $0.type == "acTL" })
        let frame = try #require(file.chunks.firstIndex { $0.type == "fcTL" })
        #expect(frame == control + 1)
        file.chunks.swapAt(control, frame)
        let decoder = try ImageDecoder(file.data, registry: SampleFiles.registry)
        let ordered = try ImageDecoder(data, registry: SampleFiles.registry)
        #expect(decoder.header.animation == ordered.header.animation)
        for index in 0..<3 {
            let options = DecodeOptions(frame: index)
            #expect(
                try decoder.decode(options: options).pixels.samples
                    == (try ordered.decode(options: options)).pixels.samples
            )
        }
        // Without the acTL chunk, the file is a still image.
        file.chunks.removeAll { $0.type == "acTL" }
        #expect(try ImageDecoder(file.data, registry: SampleFiles.registry).header.animation.frameCount == 1)
    }

    @Test func `frames must fit together`() throws {
        let none = AnimationContent(frames: [])
        #expect(throws: CodingError.self) { try PNGCoder().encode(none, as: .png, options: EncodeOptions()) }
        var mixed = try Self.animation(.rgb8, count: 2)
        mixed.frames[1].image = Image(pixels: try .smooth(.rgb8, width: 20, height: 20))
        #expect(throws: CodingError.self) { try PNGCoder().encode(mixed, as: .png, options: EncodeOptions()) }
    }
}
