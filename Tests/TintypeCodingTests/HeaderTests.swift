// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@Suite(.computing) struct HeaderTests {
    @Test(arguments: [
        ("flower.jpg", ImageFormat.jpeg, 2_268, 1_512), ("kodak-3.png", .png, 768, 512),
        ("flower.webp", .webp, 1_134, 756),
    ])
    func `describes photographs`(name: String, format: ImageFormat, width: Int, height: Int) throws {
        let decoder = try ImageDecoder(try Fixtures.data(name), registry: SampleFiles.registry)
        let header = decoder.header
        #expect(header.format == format)
        #expect((header.pixelWidth, header.pixelHeight) == (width, height))
        #expect(header.orientation == .up)
        #expect(!header.hasAlpha)
        #expect(header.bitDepth == 8)
        #expect(header.colorProfile == nil)
        #expect(header.colorProfileDescription == nil)
        #expect(header.animation.frameCount == 1)
        #expect(header.animation.loopCount == 1)
        let image = try decoder.decode()
        #expect((image.width, image.height) == (width, height))
        #expect(image.pixels.format == .rgb8)
        #expect(image.sourceFormat == format)
    }

    @Test(arguments: [
        (ImageFormat.jpeg, PixelFormat.gray8, PixelFormat.gray8), (.jpeg, .rgb8, .rgb8), (.jpeg, .rgba8, .rgb8),
        (.png, .gray8, .gray8), (.png, .rgb8, .rgb8), (.png, .rgba8, .rgba8), (.webp, .gray8, .rgb8),
        (.webp, .rgb8, .rgb8), (.webp, .rgba8, .rgba8),
    ])
    func `says whether there is alpha`(format: ImageFormat, stored: PixelFormat, decoded: PixelFormat) throws {
        let data = try SampleFiles.smooth(format, stored)
        #expect(try ImageDecoder(data, registry: SampleFiles.registry).header.hasAlpha == decoded.hasAlpha)
        #expect(try SampleFiles.decode(data).pixels.format == decoded)
    }

    @Test(arguments: 1...8, [false, true]) func `reads the orientation of a JPEG`(
        value: Int,
        isLittleEndian: Bool
    ) throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 32, height: 16)
        let data = try SampleFiles.jpeg(pixels, orientation: value, isLittleEndian: isLittleEndian)
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        let orientation = try #require(Orientation(rawValue: UInt8(value)))
        #expect(decoder.header.orientation == orientation)
        #expect(decoder.header.uprightSize == orientation.uprightSize(width: 32, height: 16))
        let stored = try decoder.decodeStored().image
        #expect((stored.width, stored.height) == (32, 16))
        #expect(stored.orientation == orientation)
        let upright = try decoder.decode()
        #expect((upright.width, upright.height) == (value < 5 ? (32, 16) : (16, 32)))
        #expect(upright.orientation == .up)
        #expect(upright.pixels.samples == (try stored.upright().pixels.samples))
    }

    @Test(arguments: [0, 9, 255, 256, 65_535]) func `other orientations count as upright`(value: Int) throws {
        let data = try SampleFiles.jpeg(try .smooth(.gray8, width: 8, height: 8), orientation: value)
        #expect(try ImageDecoder(data, registry: SampleFiles.registry).header.orientation == .up)
    }

    @Test(arguments: 1...8) func `reads the orientation of APNG`(value: Int) throws {
        var file = PNGFile(try SampleFiles.smooth(.png, width: 6, height: 4))
        file.insert("eXIf", SampleFiles.exif(orientation: value))
        let decoder = try ImageDecoder(file.data, registry: SampleFiles.registry)
        #expect(Int(decoder.header.orientation.rawValue) == value)
        let image = try decoder.decode()
        #expect((image.width, image.height) == (value < 5 ? (6, 4) : (4, 6)))
    }

    @Test(arguments: 1..<40) func `a broken EXIF block is ignored`(count: Int) throws {
        let exif = SampleFiles.exif(orientation: 6)
        var cut = PNGFile(try SampleFiles.smooth(.png, width: 6, height: 4))
        cut.insert("eXIf", Array(exif.prefix(count)))
        #expect(try SampleFiles.decode(cut.data).sourceFormat == .png)
        var generator = SeededGenerator(seed: UInt64(count))
        var noisy = PNGFile(try SampleFiles.smooth(.png, width: 6, height: 4))
        noisy.insert("eXIf", exif.map { Bool.random(using: &generator) ? $0 : .random(in: 0...255, using: &generator) })
        #expect(try SampleFiles.decode(noisy.data).sourceFormat == .png)
    }

    @Test func `a broken profile is ignored`() throws {
        var file = PNGFile(try SampleFiles.smooth(.png))
        file.insert("iCCP", Array("name\0\0not compressed".utf8))
        let decoder = try ImageDecoder(file.data, registry: SampleFiles.registry)
        #expect(decoder.header.colorProfile == nil)
        #expect(try decoder.decode().width == 64)
    }

    @Test func `nonsense in place of a profile has no description`() throws {
        var header = ImageHeader(format: .jpeg, pixelWidth: 1, pixelHeight: 1)
        header.colorProfile = Data("this is no profile".utf8)
        #expect(header.colorProfileDescription == nil)
        header.colorProfile = Data()
        #expect(header.colorProfileDescription == nil)
    }
}
