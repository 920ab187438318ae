// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@Suite(.computing) struct ProfileEncodingTests {
    @Test(arguments: [
        (ImageFormat.jpeg, PixelFormat.rgb8), (.jpeg, .gray8), (.png, .rgb8), (.png, .rgba8), (.png, .gray8),
        (.webp, .rgb8),
        (.webp, .rgba8),
    ])
    func `an image keeps its profile`(format: ImageFormat, pixelFormat: PixelFormat) throws {
        let profile = ICCSample.profile(isGray: pixelFormat == .gray8)
        let image = try Self.image(pixelFormat).tagged(with: ColorProfile(data: profile))
        let data = try Self.encode(image, as: format)
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        #expect(decoder.header.colorProfile == profile)
        let kept = try decoder.decode(options: DecodeOptions(color: .keep))
        #expect(kept.colorProfile?.data == profile)
        if format == .png { #expect(kept.pixels.samples == image.pixels.samples) }
    }

    /// GIF has no profiles, and WebP has no profiles for gray.
    @Test(arguments: [(ImageFormat.gif, PixelFormat.gray8), (.gif, .rgb8), (.webp, .gray8)])
    func `an image is converted where its profile cannot be kept`(format: ImageFormat, pixelFormat: PixelFormat) throws
    {
        let profile = ICCSample.profile(isGray: pixelFormat == .gray8)
        // Half of the light is 128 in a linear profile and 188 in sRGB.
        let image = try Self.image(pixelFormat).tagged(with: ColorProfile(data: profile))
        let data = try Self.encode(image, as: format)
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        #expect(decoder.header.colorProfile == nil)
        let green = try decoder.decode().pixels.samples[1]
        #expect((180...196).contains(green))
    }

    @Test(arguments: [ImageFormat.png, .webp, .gif]) func `an animation is converted`(format: ImageFormat) throws {
        let image = try Self.image(.rgb8).tagged(with: ColorProfile(data: ICCSample.profile(isGray: false)))
        let black = Image(pixels: try .make(.rgb8, width: 24, height: 16) { _, _, _ in 0 })
        let frames = [black, image].map { AnimationContent.Frame(image: $0, milliseconds: 100) }
        let animation = AnimationContent(frames: frames)
        let data = try SampleFiles.registry.coder(encoding: format).encode(animation, as: format, options: Self.options)
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        #expect(decoder.header.colorProfile == nil)
        let green = try decoder.decode(options: DecodeOptions(frame: 1)).pixels.samples[1]
        #expect((180...196).contains(green))
    }

    @Test func `a profile of the options counts`() throws {
        let own = ICCSample.profile(isGray: false)
        let other = ICCSample.profile(isGray: false, gamma: 0x0180)
        let image = try Self.image(.rgb8).tagged(with: ColorProfile(data: own))
        var options = Self.options
        options.metadata.colorProfile = other
        let data = try PNGCoder().encode(image, as: .png, options: options)
        #expect(try PNGCoder().open(data).header.colorProfile == other)
    }

    private static let options = EncodeOptions(quality: 100, compression: .lossless)

    private static func encode(_ image: Image, as format: ImageFormat) throws -> Data {
        try SampleFiles.registry.coder(encoding: format).encode(image, as: format, options: self.options)
    }

    private static func image(_ format: PixelFormat) throws -> Image {
        Image(pixels: try .make(format, width: 24, height: 16) { $2 == 3 ? 255 : 128 })
    }
}

/// Small ICC profiles (ICC.1:2022) whose tone curve is a power.
enum ICCSample {
    /// Returns a profile of sRGB's primaries or of gray, with `gamma` in units of 1/256.
    static func profile(isGray: Bool, gamma: UInt16 = 0x0100) -> Data {
        // The primaries of sRGB, adapted to D50, in units of 1/65,536.
        let colors: [(String, [UInt32])] = [
            ("rXYZ", [0x6FA2, 0x38F5, 0x0390]), ("gXYZ", [0x6299, 0xB785, 0x18DA]), ("bXYZ", [0x24A0, 0x0F84, 0xB6CF]),
        ]
        var tags: [(name: String, body: [UInt8])] = [("wtpt", self.xyz([0xF6D6, 0x10000, 0xD32D]))]
        let curve =
            Array("curv\0\0\0\0".utf8) + UInt32(1).bigEndianBytes + [UInt8(gamma >> 8), UInt8(gamma & 255), 0, 0]
        if isGray {
            tags.append(("kTRC", curve))
        } else {
            for color in colors { tags.append((color.0, self.xyz(color.1))) }
            for name in ["rTRC", "gTRC", "bTRC"] { tags.append((name, curve)) }
        }
        var table = UInt32(tags.count).bigEndianBytes
        var bodies: [UInt8] = []
        for tag in tags {
            let offset = UInt32(132 + 12 * tags.count + bodies.count)
            table += Array(tag.name.utf8) + offset.bigEndianBytes + UInt32(tag.body.count).bigEndianBytes
            bodies += tag.body
        }
        let size = UInt32(128 + table.count + bodies.count)
        var header = size.bigEndianBytes + [0, 0, 0, 0] + UInt32(0x0210_0000).bigEndianBytes
        header += Array((isGray ? "mntrGRAYXYZ " : "mntrRGB XYZ ").utf8) + [UInt8](repeating: 0, count: 12)
        header += Array("acsp".utf8) + [UInt8](repeating: 0, count: 28)
        header += [0xF6D6, 0x10000, 0xD32D].flatMap { UInt32($0).bigEndianBytes } + [UInt8](repeating: 0, count: 48)
        return Data(header + table + bodies)
    }

    private static func xyz(_ values: [UInt32]) -> [UInt8] {
        Array("XYZ \0\0\0\0".utf8) + values.flatMap(\.bigEndianBytes)
    }
}
