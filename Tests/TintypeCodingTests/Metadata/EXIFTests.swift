// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

@Suite(.computing) struct EXIFTests {
    @Test(arguments: [false, true]) func `the fields of a camera are read in both byte orders`(
        isLittleEndian: Bool
    ) throws {
        let metadata = ImageMetadata(exif: EXIFBlock.camera(isLittleEndian: isLittleEndian).data)
        #expect(metadata.cameraMake == "Maker")
        #expect(metadata.cameraModel == "Maker One")
        #expect(metadata.lensModel == "A lens")
        #expect(metadata.orientation == .right)
        #expect(metadata.density == ImageMetadata.PixelDensity(horizontal: 300, vertical: 150, unit: .centimeter))
        #expect(metadata.dateTaken?.description == "2024-02-29T23:59:58.250-03:30")
        // The same instant in UTC is 2024-03-01T03:29:58.25Z.
        #expect(metadata.dateTaken?.date == Date(timeIntervalSince1970: 1_709_263_798.25))
        let position = try #require(metadata.position)
        #expect(abs(position.latitude - -33.857_041_67) < 1e-8)
        #expect(abs(position.longitude - 151.2) < 1e-8)
        #expect(position.altitude == -12.5)
    }

    @Test func `a block is given without the prefix of a JPEG`() {
        let block = EXIFBlock.camera().data
        #expect(ImageMetadata(exif: Data("Exif\0\0".utf8) + block).exif == block)
    }

    @Test(
        arguments: [
            ("2024:05:06 07:08:09", nil as String?, "2024-05-06T07:08:09"),
            ("2024:05:06 07:08:09", "+02:00", "2024-05-06T07:08:09+02:00"),
            ("2024:05:06 07:08:09", "Z", "2024-05-06T07:08:09+00:00"),
            ("2024:05:06 07:08:09", "+2", "2024-05-06T07:08:09"),
            ("2024:05:06 07:08:09", "+24:00", "2024-05-06T07:08:09"),
            ("0000:00:00 00:00:00", nil, nil), ("    :  :     :  :  ", nil, nil), ("2023:02:29 00:00:00", nil, nil),
            ("2024:13:01 00:00:00", nil, nil), ("2024:05:06 24:00:00", nil, nil), ("2024:05:06", nil, nil),
            ("99999999999999999999:1:1 1:1:1", nil, nil), ("1900:02:29 00:00:00", nil, nil),
            ("2000:02:29 00:00:00", nil, "2000-02-29T00:00:00"),
        ] as [(String, String?, String?)]
    )
    func `a date is one of the calendar, or none`(text: String, offset: String?, expected: String?) {
        #expect(ImageMetadata.CaptureDate(text, fraction: nil, offset: offset)?.description == expected)
    }

    @Test(arguments: [("1970:01:01 00:00:00", 0.0), ("2000:03:01 12:00:00", 951_912_000), ("1969:12:31 23:59:59", -1)])
    func `a date is a moment where its offset is known`(text: String, seconds: Double) {
        let date = ImageMetadata.CaptureDate(text, fraction: nil, offset: "+00:00")?.date
        #expect(date == Date(timeIntervalSince1970: seconds))
        #expect(ImageMetadata.CaptureDate(text, fraction: nil, offset: nil)?.date == nil)
    }

    // MARK: Broken blocks

    struct Broken: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]

        init(_ name: String, _ bytes: [UInt8]) {
            self.testDescription = name
            self.bytes = bytes
        }
    }

    static let broken: [Broken] = {
        let sound = EXIFBlock.camera()
        func with(_ change: (inout EXIFBlock) -> Void) -> [UInt8] {
            var block = EXIFBlock()
            change(&block)
            return block.bytes
        }
        func field(_ type: Int, _ count: Int, _ value: [UInt8]) -> EXIFBlock.Field {
            .init(tag: 0x010F, type: type, count: count, value: value)
        }
        let head: [UInt8] = [0x4D, 0x4D, 0, 42]
        return [
            Broken("nothing", []), Broken("a byte order alone", Array("MM".utf8)),
            Broken("another number than 42", Array("MM".utf8) + [0, 43, 0, 0, 0, 8, 0, 0]),
            Broken("a directory within the head", head + [0, 0, 0, 0]),
            Broken("a directory behind the end", head + [0xFF, 0xFF, 0xFF, 0xFF]),
            Broken("a directory without its number", head + [0, 0, 0, 8, 0]),
            Broken("65,535 fields that are not there", head + [0, 0, 0, 8, 0xFF, 0xFF]),
            Broken("no field", head + [0, 0, 0, 8, 0, 0, 0, 0, 0, 0]),
            Broken("a count of all bits", with { $0.main = [field(2, 0xFFFF_FFFF, [0, 0, 0, 8])] }),
            Broken("a count that overflows four bytes", with { $0.main = [field(12, 0x2000_0001, [0, 0, 0, 8])] }),
            Broken("a value behind the end", with { $0.main = [field(2, 100, [0x7F, 0xFF, 0xFF, 0xFF])] }),
            Broken("a value at the last byte", with { $0.main = [field(2, 8, [0, 0, 0, 25])] }),
            Broken("a type that there is not", with { $0.main = [field(77, 1, [65, 0, 0, 0])] }),
            Broken("a count of none", with { $0.main = [field(2, 0, [65, 0, 0, 0])] }),
            Broken("a text of zeros", with { $0.main = [field(2, 4, [0, 0, 0, 0])] }),
            Broken("a text that is a number", with { $0.main = [field(4, 1, [0, 0, 0, 8])] }),
            Broken("its own directory as that of the details", with { $0.main = [$0.long(0x8769, 8)] }),
            Broken("its own directory as that of the position", with { $0.main = [$0.long(0x8825, 8)] }),
            Broken("details behind the end", with { $0.main = [$0.long(0x8769, 0xFFFF_FFFE)] }),
            Broken(
                "a position of two numbers",
                with { $0.position = [$0.text(1, "N"), $0.rationals(2, [(1, 1), (2, 1)])] }
            ),
            Broken(
                "a position without letters",
                with {
                    $0.position = [
                        $0.rationals(2, [(1, 1), (2, 1), (3, 1)]), $0.rationals(4, [(1, 1), (2, 1), (3, 1)]),
                    ]
                }
            ),
            Broken("a density of 1 / 0", with { $0.main = [$0.rationals(0x011A, [(1, 0)])] }),
            Broken("a density of no unit", with { $0.main = [$0.rationals(0x011A, [(72, 1)]), $0.short(0x0128, 1)] }),
            Broken("the first 20 bytes of a sound block", Array(sound.bytes.prefix(20))),
        ]
    }()

    @Test(arguments: Self.broken) func `a broken block says nothing, and does no harm`(block: Broken) {
        for prefix in [[], Array("Exif\0\0".utf8)] {
            let metadata = ImageMetadata(exif: Data(prefix + block.bytes))
            #expect(metadata.cameraMake == nil && metadata.dateTaken == nil)
            #expect(metadata.position == nil && metadata.density == nil && metadata.orientation == .up)
            let carried = EncodeOptions.Metadata(carryingOver: metadata).exif
            #expect(carried.map { ImageMetadata(exif: $0).cameraMake } ?? nil == nil)
        }
    }

    @Test(arguments: [
        (91, 1, 0), (-91, 1, 0), (0, 0, 181), (89, 90, 0),
    ]) func `a place that is not on the earth is none`(degrees: Int, minutes: Int, longitude: Int) {
        var block = EXIFBlock()
        block.position = [
            block.text(1, "N"), block.rationals(2, [(degrees, 1), (minutes, 1), (0, 1)], isSigned: true),
            block.text(3, "E"), block.rationals(4, [(longitude, 1), (0, 1), (0, 1)]),
        ]
        #expect(ImageMetadata(exif: block.data).position == nil)
    }

    @Test func `every prefix of a block, and every byte changed, is read without harm`() {
        for isLittleEndian in [false, true] {
            let bytes = EXIFBlock.camera(isLittleEndian: isLittleEndian).bytes
            for count in 0..<bytes.count { Self.look(Array(bytes[..<count])) }
            var generator = SeededGenerator(seed: 14)
            for index in bytes.indices {
                for value in [0, 0xFF, UInt8.random(in: 1...254, using: &generator)] {
                    var changed = bytes
                    changed[index] = value
                    Self.look(changed)
                }
            }
        }
    }

    private static func look(_ bytes: [UInt8]) {
        let metadata = ImageMetadata(exif: Data(bytes))
        if let position = metadata.position { #expect(abs(position.latitude) <= 90 && abs(position.longitude) <= 180) }
        guard let carried = EncodeOptions.Metadata(carryingOver: metadata).exif else { return }
        #expect(carried.count <= 3 * bytes.count)
        #expect(ImageMetadata(exif: carried).position == nil)
    }

    /// Copies of the shared bytes would take gigabytes.
    @Test func `fields that share their bytes are not multiplied`() {
        let (count, size) = (4_000, 60_000)
        var block = EXIFBlock()
        let place = 8 + 2 + count * 12 + 4
        block.main = (0..<count).map { .init(tag: 0x9400 + $0, type: 7, count: size, value: block.number(place, 4)) }
        let bytes = block.bytes + [UInt8](repeating: 1, count: size)
        #expect(TIFFStructure(Data(bytes))?.first?.fields.count == count)
        #expect(EXIF.carriedOver(Data(bytes), keepsPosition: true) == nil)
    }

    // MARK: Carrying over

    @Test(arguments: [false, true], [false, true])
    func `a block that is carried over is upright, and has a position only where asked for`(
        isLittleEndian: Bool,
        keepsPosition: Bool
    ) throws {
        let original = ImageMetadata(exif: EXIFBlock.camera(isLittleEndian: isLittleEndian).data)
        let options = EncodeOptions.Metadata(carryingOver: original, keepsPosition: keepsPosition)
        #expect(options.exif != nil)
        let carried = ImageMetadata(exif: options.exif)
        #expect(carried.orientation == .up)
        #expect(carried.position == (keepsPosition ? original.position : nil))
        #expect(carried.cameraMake == "Maker" && carried.cameraModel == "Maker One" && carried.lensModel == "A lens")
        #expect(carried.dateTaken == original.dateTaken && carried.density == original.density)
    }

    @Test func `nothing stays of what is left out`() throws {
        let block = EXIFBlock.camera()
        let options = EncodeOptions.Metadata(carryingOver: ImageMetadata(exif: block.data))
        let carried = try #require(options.exif)
        let seconds = Data(block.number(2_535, 4) + block.number(100, 4))
        #expect(block.data.firstRange(of: seconds) != nil)
        #expect(carried.firstRange(of: seconds) == nil)
        #expect(carried.firstRange(of: Data("thumbnail".utf8)) == nil)
        #expect(carried.firstRange(of: Data("notes".utf8)) == nil)
        let structure = try #require(TIFFStructure(carried))
        let first = try #require(structure.first)
        #expect(first.field(.positionDirectory) == nil)
        // The offset of the next directory is 0.
        #expect(carried.uint32(at: 8 + 2 + first.fields.count * 12) == 0)
        let details = try #require(structure.directory(.exifDirectory, of: first))
        #expect(details.fields.map(\.tag.rawValue) == [0x9003, 0x9011, 0x9291, 0xA434])
    }
}
