// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// Encodes GIFs and decodes them again.
@Suite(.computing, .timeLimit(.minutes(5))) struct GIFEncodingTests {
    private let coder = GIFCoder()

    @Test(arguments: [1, 2, 3, 4, 5, 16, 17, 128, 129, 255, 256])
    func `few colors are exact`(count: Int) throws {
        let pixels = (0..<64 * 33).map { GIFSamples.color($0 * 7 % count) }
        let image = try GIFSamples.image(pixels, width: 64)
        let decoded = try self.decode(try self.coder.encode(image, as: .gif, options: EncodeOptions()))
        #expect(decoded == pixels)
    }

    @Test(arguments: [1, 2, 3, 4, 5, 16, 127, 128, 255])
    func `few colors with transparency are exact`(count: Int) throws {
        let pixels = (0..<50 * 40).map { $0 % 11 == 3 ? 0 : GIFSamples.color($0 * 5 % count) }
        let image = try GIFSamples.image(pixels, width: 50)
        let data = try self.coder.encode(image, as: .gif, options: EncodeOptions())
        #expect(try self.coder.open(data).header.hasAlpha)
        #expect(try self.decode(data) == pixels)
    }

    /// The encoder fills and resets the code table many times.
    @Test func `noise is exact`() throws {
        var generator = SeededGenerator(seed: 7)
        let pixels = (0..<300 * 200).map { _ in GIFSamples.color(Int.random(in: 0..<256, using: &generator)) }
        let image = try GIFSamples.image(pixels, width: 300)
        #expect(try self.decode(try self.coder.encode(image, as: .gif, options: EncodeOptions())) == pixels)
    }

    @Test func `a flat image is exact and small`() throws {
        let pixels = [UInt32](repeating: GIFSamples.color(3), count: 1_000 * 1_000)
        let data = try self.coder.encode(
            try GIFSamples.image(pixels, width: 1_000),
            as: .gif,
            options: EncodeOptions()
        )
        #expect(data.count < 4_000)
        #expect(try self.decode(data) == pixels)
    }

    @Test(arguments: [true, false]) func `many colors are near`(isDithered: Bool) throws {
        let pixels = (0..<64 * 64).map { (place: Int) -> UInt32 in
            0xFF80_0000 | UInt32(place % 64 * 4 | place / 64 * 4 << 8)
        }
        let data = try self.coder.encode(
            try GIFSamples.image(pixels, width: 64),
            as: .gif,
            options: EncodeOptions(isDithered: isDithered)
        )
        let decoded = try self.decode(data)
        let errors = zip(pixels, decoded).map { GIFSamples.squaredDistance($0, $1) }
        // A palette of 256 equal squares would leave an error of 40.
        #expect(errors.reduce(0, +) / errors.count < (isDithered ? 120 : 45))
        guard isDithered else { return }
        // Dithering preserves the mean.
        for channel in [0, 8, 16] as [UInt32] {
            let wanted = pixels.reduce(0) { $0 + Int($1 >> channel & 255) }
            let got = decoded.reduce(0) { $0 + Int($1 >> channel & 255) }
            #expect(abs(wanted - got) < pixels.count)
        }
    }

    @Test func `alpha is cut in the middle`() throws {
        let layout = try PixelLayout(format: .rgba8, width: 2, height: 1)
        let buffer = try PixelBuffer(layout) { bytes in
            for (offset, sample) in [10, 20, 30, 127, 40, 50, 60, 128].enumerated() {
                bytes.storeBytes(of: UInt8(sample), toByteOffset: offset, as: UInt8.self)
            }
        }
        let data = try self.coder.encode(Image(pixels: buffer), as: .gif, options: EncodeOptions())
        #expect(try self.decode(data) == [0, 0xFF3C_3228])
    }

    @Test(arguments: GIFSamples.animations) func `animations are exact`(_ sample: GIFSamples.Animation) throws {
        let frames = try sample.frames.enumerated().map { index, pixels in
            AnimationContent.Frame(
                image: try GIFSamples.image(pixels, width: sample.width),
                milliseconds: index * 10
            )
        }
        let data = try self.coder.encode(
            AnimationContent(frames: frames, loopCount: sample.loopCount),
            as: .gif,
            options: EncodeOptions()
        )
        let encoded = try self.coder.open(data)
        #expect(encoded.header.animation.loopCount == sample.loopCount)
        #expect(encoded.header.animation.durations == frames.map { max(20, $0.milliseconds) })
        let reader = try #require(try encoded.frameReader(options: DecodeOptions()))
        let composited = try GIFCorpus.composite(reader)
        #expect(composited.count == sample.frames.count)
        for (index, frame) in sample.frames.enumerated() { #expect(composited[index] == frame, "frame \(index)") }
    }

    @Test(arguments: [false, true])
    func `frames of many colours share a palette, whatever colours others have`(beginsBlack: Bool) throws {
        var frames = try (0..<3).map { index in
            let pixels = try PixelBuffer.make(.rgb8, width: 48, height: 32) { column, row, channel in
                UInt8([column * 5, row * 7, (column + row) * 2 + index][channel])
            }
            return AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: 100)
        }
        if beginsBlack {
            let black = try PixelBuffer.make(.rgb8, width: 48, height: 32) { _, _, _ in 0 }
            frames.insert(.init(image: Image(pixels: black), milliseconds: 100), at: 0)
        }
        let data = try self.coder.encode(AnimationContent(frames: frames), as: .gif, options: EncodeOptions())
        // The frames with many colours share the file's palette, and an exact frame has its own.
        #expect(
            Self.ownPalettes(of: Array(data)) == (beginsBlack ? [true, false, false, false] : [false, false, false])
        )
    }

    /// Returns whether each frame of a file has its own palette.
    private static func ownPalettes(of file: [UInt8]) -> [Bool] {
        var result: [Bool] = []
        func tableSize(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }
        var place = 13 + tableSize(file[10])
        func skipBlocks() {
            while file[place] != 0 { place += Int(file[place]) + 1 }
            place += 1
        }
        while file[place] != 0x3B {
            if file[place] == 0x21 {
                place += 2
            } else {
                result.append(file[place + 9] & 0x80 != 0)
                place += 11 + tableSize(file[place + 9])
            }
            skipBlocks()
        }
        return result
    }

    @Test func `only what changes is written`() throws {
        var pixels = (0..<200 * 200).map { GIFSamples.color($0 % 97) }
        let first = try GIFSamples.image(pixels, width: 200)
        pixels[50 * 200 + 60] = GIFSamples.color(200)
        pixels[52 * 200 + 65] = GIFSamples.color(201)
        let second = try GIFSamples.image(pixels, width: 200)
        let data = try self.coder.encode(
            AnimationContent(frames: [first, second].map { .init(image: $0, milliseconds: 104) }),
            as: .gif,
            options: EncodeOptions()
        )
        let encoded = try self.coder.open(data)
        #expect(encoded.header.animation.durations == [100, 100])
        let reader = try #require(try encoded.frameReader(options: DecodeOptions()))
        let frame = reader.frames[1]
        #expect([frame.left, frame.top, frame.width, frame.height] == [60, 50, 6, 3])
    }

    @Test func `the number of bytes is kept`() throws {
        var generator = SeededGenerator(seed: 1)
        let pixels = (0..<100 * 100).map { _ in UInt32.random(in: 0...0xFF_FFFF, using: &generator) | 0xFF00_0000 }
        let image = try GIFSamples.image(pixels, width: 100)
        let data = try self.coder.encode(image, as: .gif, options: EncodeOptions(maximumByteCount: 6_000))
        #expect(data.count <= 6_000)
        let error = #expect(throws: CodingError.self) {
            try self.coder.encode(image, as: .gif, options: EncodeOptions(maximumByteCount: 100))
        }
        #expect(error?.code == .encodingFailed)
    }

    @Test func `frames of several sizes are refused`() throws {
        let images = [try GIFSamples.image([1, 2], width: 2), try GIFSamples.image([1, 2], width: 1)]
        for frames in [images, []] {
            let content = AnimationContent(frames: frames.map { .init(image: $0, milliseconds: 50) })
            let error = #expect(throws: CodingError.self) {
                try self.coder.encode(content, as: .gif, options: EncodeOptions())
            }
            #expect(error?.code == .invalidOptions)
        }
    }

    @Test func `turned images come out upright`() throws {
        let stored = try GIFSamples.image([GIFSamples.color(1), GIFSamples.color(2)], width: 2)
        let turned = Image(pixels: stored.pixels, orientation: .right)
        let data = try self.coder.encode(turned, as: .gif, options: EncodeOptions())
        let encoded = try self.coder.open(data)
        #expect((encoded.header.pixelWidth, encoded.header.pixelHeight) == (1, 2))
        #expect(try self.decode(data) == [GIFSamples.color(1), GIFSamples.color(2)])
    }

    @Test(arguments: [[GIFSamples.color(5)], [0]]) func `an image of one pixel is exact`(pixels: [UInt32]) throws {
        let image = try GIFSamples.image(pixels, width: 1)
        #expect(try self.decode(try self.coder.encode(image, as: .gif, options: EncodeOptions())) == pixels)
        let animation = AnimationContent(frames: [.init(image: image, milliseconds: 100)])
        let data = try self.coder.encode(animation, as: .gif, options: EncodeOptions())
        #expect(try self.decode(data) == pixels)
        #expect(Self.ownPalettes(of: Array(data)) == [false])
    }

    @Test(arguments: [1, 65_535]) func `the longest sides are written`(width: Int) throws {
        let pixels = (0..<65_535).map { $0 % 5 == 4 ? 0 : GIFSamples.color($0 / 3 % 200) }
        let image = try GIFSamples.image(pixels, width: width)
        let data = try self.coder.encode(image, as: .gif, options: EncodeOptions())
        let limits = DecodingLimits(maximumSide: 65_535)
        let encoded = try self.coder.open(data, limits: limits)
        let decoded = try encoded.decode(options: DecodeOptions(limits: limits))
        #expect(GIFCorpus.pixels(of: decoded.image.pixels) == pixels)
        let longer = try PixelBuffer.make(.gray8, width: width == 1 ? 1 : 65_536, height: width == 1 ? 65_536 : 1) {
            _,
            _,
            _ in 0
        }
        let error = #expect(throws: CodingError.self) {
            try self.coder.encode(Image(pixels: longer), as: .gif, options: EncodeOptions())
        }
        #expect(error?.code == .encodingFailed)
    }

    @Test(arguments: [PixelFormat.rgb8, .rgba8]) func `all formats give the same file for the same pixels`(
        format: PixelFormat
    ) throws {
        func data(_ format: PixelFormat) throws -> Data {
            let pixels = try PixelBuffer.make(format, width: 41, height: 30) { column, row, channel in
                channel == 3 ? 255 : UInt8(column * row % 256)
            }
            return try self.coder.encode(Image(pixels: pixels), as: .gif, options: EncodeOptions())
        }
        #expect(try data(format) == data(.gray8))
    }

    @Test(arguments: [true, false]) func `what is transparent stays so among many colours`(isDithered: Bool) throws {
        var generator = SeededGenerator(seed: 4)
        let pixels = (0..<90 * 70).map { place in
            place % 13 < 4 ? 0 : UInt32.random(in: 0...0xFF_FFFF, using: &generator) | 0xFF00_0000
        }
        let options = EncodeOptions(isDithered: isDithered)
        let data = try self.coder.encode(try GIFSamples.image(pixels, width: 90), as: .gif, options: options)
        let decoded = try self.decode(data)
        #expect(zip(pixels, decoded).allSatisfy { ($0 == 0) == ($1 == 0) })
        #expect(Set(decoded).count > 200)
    }

    /// An animation of one frame is encoded like a still image with a delay.
    @Test func `a single frame of few colours has their palette`() throws {
        let pixels = (0..<30 * 20).map { GIFSamples.color($0 % 3) }
        let animation = AnimationContent(
            frames: [.init(image: try GIFSamples.image(pixels, width: 30), milliseconds: 70)]
        )
        let data = try self.coder.encode(animation, as: .gif, options: EncodeOptions())
        #expect(try self.decode(data) == pixels)
        // The palette has four entries: three colours and the transparent one.
        #expect(data[10] & 0x87 == 0x81)
        #expect(Self.ownPalettes(of: Array(data)) == [false])
    }

    /// The second frame clears the middle of the first one, and the third frame draws it again.
    @Test func `a part that is cleared is drawn again`() throws {
        let full = (0..<8 * 8).map { GIFSamples.color($0 % 5) }
        var hole = full
        for place in [27, 28, 35, 36] { hole[place] = 0 }
        let frames = [full, hole, full, hole]
        let animation = AnimationContent(
            frames: try frames.map { .init(image: try GIFSamples.image($0, width: 8), milliseconds: 50) }
        )
        let encoded = try self.coder.open(try self.coder.encode(animation, as: .gif, options: EncodeOptions()))
        let reader = try #require(try encoded.frameReader(options: DecodeOptions()))
        #expect(try GIFCorpus.composite(reader) == frames)
    }

    private func decode(_ data: Data) throws -> [UInt32] {
        GIFCorpus.pixels(of: try ImageDecoder(data, registry: CoderRegistry()).decode().pixels)
    }
}
