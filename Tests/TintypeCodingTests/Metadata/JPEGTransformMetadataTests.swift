// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// The metadata of a JPEG after a lossless transform.
@Suite(.computing, .timeLimit(.minutes(5))) struct JPEGTransformMetadataTests {
    struct Segment: Equatable {
        let marker: UInt8
        let content: [UInt8]

        init(_ marker: UInt8, _ content: [UInt8]) {
            self.marker = marker
            self.content = content
        }

        init(_ marker: UInt8, _ name: String, _ content: some Sequence<UInt8> = []) {
            self.init(marker, Array(name.utf8) + Array(content))
        }

        var bytes: [UInt8] { [0xFF, self.marker] + UInt16(self.content.count + 2).bigEndianBytes + self.content }
    }

    private static let jfif = Segment(0xE0, "JFIF\0", [1, 2, 1, 0, 72, 0, 96, 0, 0])
    private static let profile = Segment(0xE2, "ICC_PROFILE\0", [1, 1] + Array("a profile".utf8))
    private static let comment = Segment(0xFE, "a comment")
    private static let camera = Segment(0xE1, "Exif\0\0", EXIFBlock.camera().bytes)
    private static let packet = Segment(
        0xE1,
        "http://ns.adobe.com/xap/1.0/\0<x:xmpmeta xmlns:x='adobe:ns:meta/'><a tiff:Orientation='6' b='kept'/></x:xmpmeta>"
    )
    private static let directory = Segment(0xE2, "MPF\0", [1, 2, 3, 4])

    /// Returns an image of 64 by 48 pixels that has `segments` instead of its own.
    private static func image(_ segments: [Segment]) throws -> Data {
        let data = try SampleFiles.smooth(.jpeg, .rgb8)
        // The encoder's JFIF segment has 18 bytes.
        return Data([0xFF, 0xD8] + segments.flatMap(\.bytes)) + data.dropFirst(20)
    }

    /// Returns the application segments and comments before the first table.
    private static func segments(of data: Data) -> [Segment] {
        let bytes = Array(data)
        var segments: [Segment] = []
        var offset = 2
        while offset + 4 <= bytes.count, bytes[offset] == 0xFF, bytes[offset + 1] != 0xDA {
            let end = offset + 2 + Int(bytes[offset + 2]) << 8 + Int(bytes[offset + 3])
            let marker = bytes[offset + 1]
            if marker == 0xFE || marker >> 4 == 0xE {
                segments.append(Segment(marker, Array(bytes[offset + 4..<end])))
            }
            offset = end
        }
        return segments
    }

    private static func metadata(_ data: Data) throws -> ImageMetadata {
        try JPEGCoder().open(data).metadata(limits: DecodingLimits())
    }

    // MARK: All

    @Test(arguments: [JPEGTransform.Coding.standardTables, .optimizedTables, .progressive])
    func `all stays where the image is only coded anew`(coding: JPEGTransform.Coding) throws {
        for jfif in [[Self.jfif], []] {
            let segments = jfif + [Self.camera, Self.packet, Self.profile, Self.comment, Segment(0xE5, "own")]
            let data = try Self.image(segments + [Self.directory])
            // The directory of other images is dropped, because its offsets would be wrong.
            #expect(try Self.segments(of: JPEGTransform(coding: coding).apply(to: data).data) == segments)
        }
    }

    @Test func `an image that is turned upright says so, and has no small copy of what it was`() throws {
        for isLittleEndian in [false, true] {
            let block = EXIFBlock.camera(isLittleEndian: isLittleEndian)
            let data = try Self.image([Self.jfif, Segment(0xE1, "Exif\0\0", block.bytes), Self.packet, Self.comment])
            let result = try JPEGTransform(turnsUpright: true).apply(to: data)
            #expect((result.width, result.height) == (48, 64))
            let metadata = try Self.metadata(result.data)
            #expect(
                metadata.orientation == .up && metadata.cameraModel == "Maker One" && metadata.lensModel == "A lens"
            )
            #expect(metadata.position != nil)
            // The densities of rows and columns, 72 and 96 dots an inch, change places.
            #expect(metadata.density?.horizontal == 96 && metadata.density?.vertical == 72)
            let exif = try #require(metadata.exif)
            #expect(exif.firstRange(of: Data("a thumbnail".utf8)) == nil)
            #expect(exif.firstRange(of: Data("maker's notes".utf8)) != nil)
            #expect(exif.count < block.bytes.count)
            // The width is updated.
            var expected = block
            expected.thumbnail = []
            expected.main[2] = block.short(0x0112, 1)
            expected.details[4] = block.long(0xA002, 48)
            #expect(exif == expected.data)
            let packet = try #require(metadata.xmp.map { String(decoding: $0, as: UTF8.self) })
            #expect(!packet.contains("Orientation") && packet.contains("b='kept'"))
            #expect(Self.segments(of: result.data).last == Self.comment)
        }
    }

    @Test func `a small copy goes with a crop, and stays where nothing is cut`() throws {
        let thumbnails: [UInt8] = Array("8BIM".utf8) + [0x04, 0x0C, 0, 0, 0, 0, 0, 5] + Array("small".utf8) + [0]
        let name: [UInt8] = Array("8BIM".utf8) + [0x03, 0xED, 1, 0x61, 0, 0, 0, 2, 7, 7]
        let resources = Segment(0xED, "Photoshop 3.0\0", name + thumbnails + name)
        let extra = Segment(0xE0, "JFXX\0", [0x10] + Array("small".utf8))
        let extended = Segment(0xE1, "http://ns.adobe.com/xmp/extension/\0", Array("small".utf8))
        let data = try Self.image([Self.jfif, extra, Self.camera, extended, resources])
        let kept = try JPEGTransform(coding: .progressive).apply(to: data).data
        #expect(Self.segments(of: kept) == [Self.jfif, extra, Self.camera, extended, resources])
        let crop = PixelRectangle(x: 0, y: 0, width: 32, height: 32)
        let cut = try JPEGTransform(crop: crop).apply(to: data).data
        for word in ["small", "thumbnail"] { #expect(cut.firstRange(of: Data(word.utf8)) == nil) }
        #expect(Self.segments(of: cut).last == Segment(0xED, "Photoshop 3.0\0", name + name))
        // The crop does not turn the image, so the orientation is still needed.
        #expect(try Self.metadata(cut).orientation == .right)
    }

    /// Offsets that form cycles, overlap or lead outside of the block, and huge sizes.
    @Test(arguments: 0..<600) func `an EXIF block that lies costs its own values at most`(seed: Int) throws {
        var generator = SeededGenerator(seed: UInt64(seed))
        var block = EXIFBlock.camera(isLittleEndian: seed % 2 == 0).bytes
        for _ in 0...seed % 5 {
            let place = Int.random(in: 8..<block.count, using: &generator)
            let values: [UInt8] = [
                0, 1, 2, 8, 0x7F, 0xFF, UInt8(truncatingIfNeeded: block.count), .random(in: 0...255, using: &generator),
            ]
            block[place] = try #require(values.randomElement(using: &generator))
        }
        if seed % 7 == 0 { block.removeLast(Int.random(in: 0..<block.count - 8, using: &generator)) }
        let data = try Self.image([Segment(0xE1, "Exif\0\0", block), Self.comment])
        let before = try JPEGCoder().open(data).header.orientation
        for transform in [
            JPEGTransform(turnsUpright: true, turn: .transpose), JPEGTransform(turn: .rotate180),
            JPEGTransform(turnsUpright: true, metadata: .none), JPEGTransform(metadata: .carriedOver),
        ] {
            let result = try transform.apply(to: data)
            let header = try JPEGCoder().open(result.data).header
            // A dropped block takes its orientation with it, so the result may also be `up`.
            let expected = transform.turnsUpright ? [.up] : transform.metadata == .all ? [before, .up] : [before]
            #expect(expected.contains(header.orientation))
            #expect(Self.segments(of: result.data).contains(Self.comment) == (transform.metadata == .all))
        }
    }

    @Test func `a thumbnail that lies over the fields takes them along`() throws {
        var block = EXIFBlock.camera()
        let place = block.bytes.count - block.thumbnail.count - 30
        var bytes = block.bytes
        // Make the thumbnail begin at the first directory.
        bytes.replaceSubrange(place + 10..<place + 14, with: [0, 0, 0, 8])
        let data = try Self.image([Segment(0xE1, "Exif\0\0", bytes), Self.comment])
        let result = try JPEGTransform(turn: .flipVertical).apply(to: data).data
        #expect(Self.segments(of: result).map(\.marker) == [0xFE])
        block.thumbnail = []
        let sound = try Self.image([Segment(0xE1, "Exif\0\0", block.bytes)])
        #expect(try Self.metadata(JPEGTransform(turn: .flipVertical).apply(to: sound).data).cameraModel == "Maker One")
    }

    // MARK: Less

    @Test(arguments: [JPEGTransform.Coding.stored, .optimizedTables], [false, true])
    func `nothing is kept but what says how the image looks`(_ coding: JPEGTransform.Coding, isUpright: Bool) throws {
        let segments = [Self.camera, Self.packet, Self.profile, Self.comment, Self.directory, Segment(0xE5, "own")]
        let data = try Self.image([Self.jfif] + segments)
        let transform = JPEGTransform(turnsUpright: isUpright, coding: coding, metadata: .none)
        let kept = Self.segments(of: try transform.apply(to: data).data)
        let exif = Segment(0xE1, "Exif\0\0", SampleFiles.exif(orientation: 6))
        let turned = Segment(0xE0, "JFIF\0", [1, 2, 1, 0, 96, 0, 72, 0, 0])
        #expect(kept == (isUpright ? [turned, Self.profile] : [Self.jfif, exif, Self.profile]))
        var bare = transform
        bare.keepsColorProfile = false
        #expect(try Self.segments(of: bare.apply(to: data).data) == kept.filter { $0 != Self.profile })
    }

    @Test(arguments: [JPEGTransform.Coding.stored, .progressive], [false, true])
    func `what goes over is what may be told`(_ coding: JPEGTransform.Coding, keepsPosition: Bool) throws {
        let data = try Self.image([Self.jfif, Self.camera, Self.packet, Self.profile, Self.comment])
        let transform = JPEGTransform(coding: coding, metadata: .carriedOver, keepsPosition: keepsPosition)
        let result = try transform.apply(to: data).data
        let metadata = try Self.metadata(result)
        #expect(metadata.cameraModel == "Maker One" && metadata.orientation == .right)
        #expect((metadata.position != nil) == keepsPosition)
        let exif = try #require(metadata.exif)
        for word in ["thumbnail", "notes"] { #expect(exif.firstRange(of: Data(word.utf8)) == nil) }
        #expect(metadata.xmp.map { String(decoding: $0, as: UTF8.self) }?.contains("b='kept'") == true)
        let segments = Self.segments(of: result)
        #expect(segments.first == Self.jfif && segments.contains(Self.profile) && !segments.contains(Self.comment))
        var upright = transform
        upright.turnsUpright = true
        #expect(try Self.metadata(upright.apply(to: data).data).orientation == .up)
    }

    /// Adobe's segment gives the colour space of RGB and CMYK images.
    @Test func `what says which colours there are stays`() throws {
        let adobe = Segment(0xEE, "Adobe", [0, 100, 0, 0, 0, 0, 0])
        let data = try Self.image([adobe, Self.comment])
        let source = try #require(JPEGCoefficients(data))
        for coding in [JPEGTransform.Coding.stored, .optimizedTables, .progressive] {
            for metadata in [JPEGTransform.Metadata.all, .none] {
                let result = try JPEGTransform(coding: coding, metadata: metadata).apply(to: data).data
                let same = try #require(JPEGCoefficients(result))
                #expect(same.colorSpace == source.colorSpace && same.difference(from: source) == nil)
                #expect(Self.segments(of: result).filter { $0.marker == 0xEE } == [adobe])
            }
        }
        JPEGTransformTests.expect(.notLossless) { try JPEGTransform(isGray: true).apply(to: data) }
    }
}
