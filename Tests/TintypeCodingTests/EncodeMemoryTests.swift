// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// Checks the memory that encoders report, because a loader's memory gate admits encodes by it.
@Suite(.computing, .enabled(if: AllocatedMemory.isMeasured)) struct EncodeMemoryTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let format: ImageFormat
        let pixels: PixelFormat
        let options: EncodeOptions
        let testDescription: String

        init(_ format: ImageFormat, _ pixels: PixelFormat, _ name: String = "", _ options: EncodeOptions = .init()) {
            self.format = format
            self.pixels = pixels
            self.options = options
            self.testDescription = "\(format), \(pixels) \(name)"
        }
    }

    private static let overLimit = EncodeOptions(maximumByteCount: 100, requiresMaximumByteCount: false)

    static let cases: [Case] = [
        Case(.jpeg, .rgb8), Case(.jpeg, .gray8), Case(.jpeg, .rgba8),
        Case(.jpeg, .rgb8, "quality 100", EncodeOptions(quality: 100)),
        Case(.jpeg, .rgb8, "progressive", EncodeOptions(isProgressive: true)),
        Case(.jpeg, .rgb8, "progressive, quality 100", EncodeOptions(quality: 100, isProgressive: true)),
        Case(.jpeg, .rgb8, "within a limit", EncodeOptions(maximumByteCount: 30_000)),
        Case(.jpeg, .rgb8, "over a limit", Self.overLimit), Case(.png, .rgb8, "over a limit", Self.overLimit),
        Case(.webp, .rgb8, "over a limit", Self.overLimit), Case(.gif, .rgb8, "over a limit", Self.overLimit),
        Case(.png, .gray8), Case(.png, .rgb8), Case(.png, .rgba8),
        Case(.png, .rgb8, "not compressed", EncodeOptions(pngLevel: 0)),
        Case(.webp, .gray8), Case(.webp, .rgb8), Case(.webp, .rgba8),
        Case(.webp, .rgb8, "quality 1", EncodeOptions(quality: 1)),
        Case(.webp, .rgb8, "quality 100", EncodeOptions(quality: 100)),
        Case(.webp, .rgb8, "quality 100, little memory", EncodeOptions(quality: 100).savingMemory),
        Case(.webp, .rgba8, "quality 100", EncodeOptions(quality: 100)),
        Case(.webp, .rgb8, "least effort", EncodeOptions(webpEffort: 0)),
        Case(.webp, .rgba8, "effort 5", EncodeOptions(webpEffort: 5)),
        Case(.webp, .rgb8, "most effort, quality 100", EncodeOptions(quality: 100, webpEffort: 6)),
        Case(.webp, .rgba8, "most effort, quality 100", EncodeOptions(quality: 100, webpEffort: 6)),
        Case(.webp, .rgb8, "lossless", EncodeOptions(compression: .lossless)),
        Case(.webp, .rgba8, "lossless", EncodeOptions(compression: .lossless)),
        Case(.gif, .gray8), Case(.gif, .rgb8), Case(.gif, .rgba8),
    ]

    /// Returns noise of two values, for which most encoders take the most memory, or of all values.
    private static func noise(
        _ format: PixelFormat,
        width: Int,
        height: Int,
        seed: UInt64 = 1,
        ofAllValues: Bool = false
    ) throws -> PixelBuffer {
        var generator = SeededGenerator(seed: seed)
        return try .make(format, width: width, height: height) { _, _, _ in
            let value = UInt8(truncatingIfNeeded: generator.next())
            return ofAllValues ? value : value & 1 == 0 ? 0 : 255
        }
    }

    @Test(arguments: Self.cases, [false, true])
    func `an encode takes no more memory than its coder says`(_ example: Case, ofAllValues: Bool) throws {
        let coder = try SampleFiles.registry.coder(encoding: example.format)
        for (width, height) in [(300, 200), (60, 50)] {
            let pixels = try Self.noise(example.pixels, width: width, height: height, ofAllValues: ofAllValues)
            let image = Image(pixels: pixels)
            let counted = coder.encodingByteCount(
                of: image.pixels.layout,
                frameCount: nil,
                as: example.format,
                options: example.options
            )
            let (data, taken) = try AllocatedMemory.peak {
                try coder.encode(image, as: example.format, options: example.options)
            }
            #expect(data.count <= counted)
            #expect(taken <= counted + counted / 10, "\(width)x\(height): counted \(counted), took \(taken)")
        }
    }

    @Test(arguments: [ImageFormat.png, .webp, .gif], [EncodeOptions.Compression.lossy, .lossless])
    func `an animation takes no more memory than its coder says`(
        format: ImageFormat,
        compression: EncodeOptions.Compression
    ) throws {
        let coder = try SampleFiles.registry.coder(encoding: format)
        let frames = try (0..<6).map { index in
            let pixels = try Self.noise(index == 3 ? .rgba8 : .rgb8, width: 70, height: 50, seed: UInt64(index))
            return AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: 50)
        }
        let animation = AnimationContent(frames: frames)
        let options = EncodeOptions(compression: compression)
        let counted = try coder.encodingByteCount(of: animation, as: format, options: options)
        let (_, taken) = try AllocatedMemory.peak { try coder.encode(animation, as: format, options: options) }
        #expect(taken <= counted + counted / 10, "counted \(counted), took \(taken)")
    }

    @Test(arguments: [4, 6]) func `blocks that stay the same become transparent, which takes memory`(effort: Int) throws
    {
        let frames = try (0..<4).map { index in
            let pixels = try PixelBuffer.make(.rgb8, width: 300, height: 200) { column, row, channel in
                let isChanged = (column / 8 * 7 + row / 8 * 13) % 4 == index
                return UInt8(truncatingIfNeeded: column * 37 ^ row * 91 ^ channel * 50 ^ (isChanged ? index * 70 : 0))
            }
            return AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: 50)
        }
        let animation = AnimationContent(frames: frames)
        let (coder, options) = (try SampleFiles.registry.coder(encoding: .webp), EncodeOptions(webpEffort: effort))
        let counted = try coder.encodingByteCount(of: animation, as: .webp, options: options)
        let (data, taken) = try AllocatedMemory.peak { try coder.encode(animation, as: .webp, options: options) }
        #expect(data.firstRange(of: Data("ALPH".utf8)) != nil)
        #expect(taken <= counted + counted / 10, "counted \(counted), took \(taken)")
    }

    @Test func `a coder that says nothing counts four copies in RGBA, and all frames`() throws {
        let layout = try PixelLayout(format: .gray8, width: 64, height: 10)
        let coder = SilentCoder()
        let still = coder.encodingByteCount(of: layout, frameCount: nil, as: .png, options: EncodeOptions())
        #expect(still == 64 * 10 * 4 * 4)
        let animated = coder.encodingByteCount(of: layout, frameCount: 3, as: .png, options: EncodeOptions())
        #expect(animated == 64 * 10 * 4 * 7)
    }

    @Test func `turns, conversions and metadata count besides`() throws {
        let pixels = try Self.noise(.rgb8, width: 64, height: 10)
        let upright = AnimationContent(frames: [.init(image: Image(pixels: pixels), milliseconds: 0)])
        let turned = AnimationContent(
            frames: [
                .init(
                    image: Image(
                        pixels: pixels,
                        orientation: .down,
                        colorProfile: ColorProfile(data: .init(repeating: 0, count: 10))
                    ),
                    milliseconds: 0
                )
            ]
        )
        let options = EncodeOptions()
        var withBlock = options
        withBlock.metadata.xmp = .init(repeating: 0, count: 1_000)
        let coder = SilentCoder()
        let plain = try coder.encodingByteCount(of: upright, as: .png, options: options)
        #expect(try coder.encodingByteCount(of: turned, as: .png, options: options) == plain + 2 * pixels.byteCount)
        #expect(try coder.encodingByteCount(of: upright, as: .png, options: withBlock) == plain + 4_000)
    }
}

/// A coder that leaves out every optional requirement.
private struct SilentCoder: ImageCoder {
    var decodableFormats: Set<ImageFormat> { [] }
    var encodableFormats: Set<ImageFormat> { [.png] }

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try PNGCoder().open(data, limits: limits)
    }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data { Data() }
}
