// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

@Suite(.computing) struct ImageMetadataTests {
    private static func metadata(_ data: Data) throws -> ImageMetadata {
        try ImageDecoder(data, registry: SampleFiles.registry).metadata()
    }

    private static func encoded(_ metadata: EncodeOptions.Metadata, as format: ImageFormat) throws -> Data {
        let image = Image(pixels: try .smooth(.rgb8, width: 24, height: 16))
        return try SampleFiles.registry.coder(encoding: format)
            .encode(image, as: format, options: EncodeOptions(metadata: metadata))
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp]) func `blocks come back from a file`(format: ImageFormat) throws {
        let exif = EXIFBlock.camera().data
        let xmp = Data(XMPPacketTests.packet.utf8)
        let metadata = try Self.metadata(try Self.encoded(EncodeOptions.Metadata(exif: exif, xmp: xmp), as: format))
        #expect(metadata.exif == exif && metadata.xmp == xmp)
        #expect(metadata.orientation == .right && metadata.cameraModel == "Maker One")
        #expect(metadata.position != nil)
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp, .gif]) func `a plain file says nothing`(format: ImageFormat) throws
    {
        let metadata = try Self.metadata(try SampleFiles.smooth(format))
        #expect(metadata == ImageMetadata())
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp])
    func `what is carried over to another format is upright and nowhere`(format: ImageFormat) throws {
        let blocks = EncodeOptions.Metadata(
            exif: EXIFBlock.camera().data,
            xmp: Data(XMPPacketTests.packet.utf8)
        )
        let original = try Self.metadata(try Self.encoded(blocks, as: .jpeg))
        let carried = try Self.metadata(
            try Self.encoded(EncodeOptions.Metadata(carryingOver: original), as: format)
        )
        #expect(carried.orientation == .up && carried.position == nil)
        #expect(carried.cameraMake == "Maker" && carried.dateTaken == original.dateTaken)
        let xmp = String(decoding: try #require(carried.xmp), as: UTF8.self)
        #expect(xmp.contains("Rating") && !xmp.contains("GPSLatitude"))
    }

    // MARK: JPEG

    private static func jpeg(_ segments: [(marker: UInt8, content: [UInt8])]) throws -> Data {
        var data = try SampleFiles.smooth(.jpeg)
        var bytes: [UInt8] = []
        for segment in segments {
            bytes += [0xFF, segment.marker] + UInt16(segment.content.count + 2).bigEndianBytes + segment.content
        }
        // Insert the segments before the image's own JFIF segment, whose density has no unit.
        data.insert(contentsOf: bytes, at: 2)
        return data
    }

    private static func jfif(_ unit: UInt8, _ horizontal: UInt16, _ vertical: UInt16) -> [UInt8] {
        Array("JFIF\0\u{1}\u{2}".utf8) + [unit] + horizontal.bigEndianBytes + vertical.bigEndianBytes + [0, 0]
    }

    @Test(arguments: [
        (1, ImageMetadata.PixelDensity(horizontal: 300, vertical: 72, unit: .inch)),
        (2, ImageMetadata.PixelDensity(horizontal: 300, vertical: 72, unit: .centimeter)), (0, nil), (3, nil),
    ]) func `a JPEG has the density of JFIF`(unit: Int, expected: ImageMetadata.PixelDensity?) throws {
        #expect(try Self.metadata(try Self.jpeg([(0xE0, Self.jfif(UInt8(unit), 300, 72))])).density == expected)
    }

    @Test func `density of JFIF counts more than that of EXIF`() throws {
        let exif = Array("Exif\0\0".utf8) + EXIFBlock.camera().bytes
        let both = try Self.metadata(try Self.jpeg([(0xE1, exif), (0xE0, Self.jfif(1, 96, 96))]))
        #expect(both.density == ImageMetadata.PixelDensity(horizontal: 96, vertical: 96, unit: .inch))
        let without = try Self.metadata(try Self.jpeg([(0xE1, exif), (0xE0, Self.jfif(0, 1, 1))]))
        #expect(without.density == ImageMetadata.PixelDensity(horizontal: 300, vertical: 150, unit: .centimeter))
    }

    @Test func `densities are comparable`() throws {
        let metric = try #require(ImageMetadata.PixelDensity(horizontal: 11_811, vertical: 1_000, unit: .meter))
        #expect(abs(metric.pixelsPerInch.horizontal - 300) < 0.001)
        #expect(abs(metric.pixelsPerInch.vertical - 25.4) < 1e-9)
        #expect(ImageMetadata.PixelDensity(horizontal: 0, vertical: 1, unit: .inch) == nil)
        #expect(ImageMetadata.PixelDensity(horizontal: 1, vertical: .infinity, unit: .inch) == nil)
    }

    @Test func `the first EXIF block that can be read counts`() throws {
        var second = EXIFBlock()
        second.main = [second.text(0x010F, "Second")]
        let prefix = Array("Exif\0\0".utf8)
        let segments: [(UInt8, [UInt8])] = [
            (0xE1, prefix + Array("broken".utf8)), (0xE1, prefix + EXIFBlock.camera().bytes),
            (0xE1, prefix + second.bytes),
        ]
        #expect(try Self.metadata(try Self.jpeg(segments)).cameraMake == "Maker")
    }

    private static func resource(_ number: UInt16, _ name: String, _ content: [UInt8]) -> [UInt8] {
        let name = [UInt8(name.utf8.count)] + Array(name.utf8)
        var bytes = Array("8BIM".utf8) + number.bigEndianBytes + name + (name.count % 2 == 0 ? [] : [0])
        bytes += UInt32(content.count).bigEndianBytes + content
        return bytes + (content.count % 2 == 0 ? [] : [0])
    }

    @Test func `IPTC records stand among the resources of Photoshop, whatever segments they are cut into`() throws {
        let records: [UInt8] = [0x1C, 2, 5, 0, 3, 65, 66, 67]
        let resources =
            Self.resource(0x03ED, "", [1, 2, 3]) + Self.resource(0x0404, "name", records)
            + Self.resource(0x0404, "", [9])
        let prefix = Array("Photoshop 3.0\0".utf8)
        for cut in [5, 20, resources.count] {
            let segments: [(UInt8, [UInt8])] = [
                (0xED, prefix + resources[..<cut]), (0xED, prefix + resources[cut...]),
            ]
            #expect(try Self.metadata(try Self.jpeg(segments)).iptc == Data(records))
        }
        for count in 0..<(resources.count - 14) {
            let metadata = try Self.metadata(try Self.jpeg([(0xED, prefix + resources[..<count])]))
            #expect(metadata.iptc == nil || metadata.iptc == Data(records))
        }
    }

    // MARK: PNG

    @Test(
        arguments: [
            ([11_811, 2_835], UInt8(1), ImageMetadata.PixelDensity(horizontal: 11_811, vertical: 2_835, unit: .meter)),
            ([1, 1], 0, nil),
            ([0, 1], 1, nil), ([1], 1, nil),
        ] as [([UInt32], UInt8, ImageMetadata.PixelDensity?)]
    )
    func `a PNG has the density of its own chunk`(
        numbers: [UInt32],
        unit: UInt8,
        expected: ImageMetadata.PixelDensity?
    ) throws {
        var file = PNGFile(try SampleFiles.smooth(.png))
        file.insert("pHYs", numbers.flatMap(\.bigEndianBytes) + [unit])
        #expect(try Self.metadata(file.data).density == expected)
    }

    @Test func `a packet of a PNG may be compressed, and stand behind the pixels`() throws {
        let packet = Data(XMPPacketTests.packet.utf8)
        let compressed = try PNGDeflater.deflated(packet)
        let keyword = Array("XML:com.adobe.xmp\0".utf8)
        var file = PNGFile(try SampleFiles.smooth(.png))
        let end = file.chunks.count - 1
        file.chunks.insert(
            .init(type: "iTXt", body: keyword + [1, 0] + Array("en\0x\0".utf8) + Array(compressed)),
            at: end
        )
        #expect(try Self.metadata(file.data).xmp == packet)
        let bodies: [[UInt8]] = [
            keyword, keyword + [1, 0, 0], keyword + [2, 0, 0, 0, 65],
            keyword + [1, 0, 0, 0] + Array(compressed.dropLast(9)),
        ]
        // The decoder ignores a broken packet.
        for body in bodies {
            file.chunks[end].body = body
            #expect(try Self.metadata(file.data).xmp == nil)
        }
    }

    @Test func `a packet that would fill the memory is none`() throws {
        let bomb = try PNGDeflater.deflated(Data(count: 17 << 20))
        #expect(bomb.count < 100_000)
        var file = PNGFile(try SampleFiles.smooth(.png))
        file.insert("iTXt", Array("XML:com.adobe.xmp\0".utf8) + [1, 0, 0, 0] + bomb)
        #expect(try Self.metadata(file.data).xmp == nil)
    }

    // MARK: WebP and GIF

    #if WebP
    @Test func `a WebP may have the prefix of a JPEG before its EXIF block`() throws {
        let image = try WebPSamples.image(try WebPSamples.flat([1, 2, 3], width: 8, height: 6))
        let exif = Array("Exif\0\0".utf8) + EXIFBlock.camera().bytes
        let data = WebPSamples.file([
            WebPSamples.extended(8, 8, 6), image, WebPSamples.chunk("EXIF", exif),
            WebPSamples.chunk("XMP ", [65, 66]),
        ])
        let metadata = try Self.metadata(data)
        #expect(metadata.exif == EXIFBlock.camera().data && metadata.xmp == Data([65, 66]))
        #expect(metadata.cameraMake == "Maker" && metadata.orientation == .right)
    }
    #endif

    /// Returns a GIF with an XMP extension between its palette and its image.
    private static func gif(_ content: [UInt8]) throws -> Data {
        var data = try SampleFiles.smooth(.gif)
        let start = 13 + 3 * (2 << Int(data[10] & 7))
        data.insert(contentsOf: [0x21, 0xFF, 11] + Array("XMP DataXMP".utf8) + content, at: start)
        return data
    }

    @Test func `a GIF has its packet as bytes before a trailer, or in blocks`() throws {
        let packet = Array(XMPPacketTests.packet.utf8)
        let trailer = [1] + (0...255).reversed().map { UInt8($0) } + [0]
        #expect(try Self.metadata(try Self.gif(packet + trailer)).xmp == Data(packet))
        var blocks: [UInt8] = []
        for start in stride(from: 0, to: packet.count, by: 255) {
            let block = packet[start..<min(start + 255, packet.count)]
            blocks += [UInt8(block.count)] + block
        }
        #expect(try Self.metadata(try Self.gif(blocks + [0])).xmp == Data(packet))
        #expect(try Self.metadata(try Self.gif([0])).xmp == nil)
    }
}
