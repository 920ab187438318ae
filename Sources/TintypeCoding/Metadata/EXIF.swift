// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import TintypeImage

/// Reads the orientation of EXIF blocks, and rebuilds blocks for another file.
///
/// Source: Exif 2.32, section 4.5 (TIFF structure) and 4.6. A broken block is ignored and never causes an error.
package enum EXIF {
    private static let shortType = 3

    /// Returns the orientation in a TIFF block, or `nil` if it is missing or the block is broken.
    static func orientation(in block: Data) -> Orientation? {
        guard let (offset, order) = self.place(in: block) else { return nil }
        return block.uint16(at: offset, order).flatMap { Orientation(rawValue: UInt8(clamping: $0)) }
    }

    /// Returns the block with its orientation set to upright, for pixels that were turned.
    package static func upright(_ block: Data) -> Data {
        guard let (offset, order) = self.place(in: block) else { return block }
        var block = Data(block)
        block[offset + (order == .big ? 1 : 0)] = Orientation.up.rawValue
        block[offset + (order == .big ? 0 : 1)] = 0
        return block
    }

    /// Returns the place of the two bytes of the orientation in a block.
    private static func place(in block: Data) -> (offset: Int, order: ByteOrder)? {
        guard let structure = TIFFStructure(block),
            let offset = self.orientationOffset(in: structure.bytes, structure.order)
        else { return nil }
        return (block.count - structure.bytes.count + offset, structure.order)
    }

    /// Returns the place of these bytes in the TIFF structure.
    private static func orientationOffset(in tiff: Data, _ order: ByteOrder) -> Int? {
        guard let directory = tiff.uint32(at: 4, order), let count = tiff.uint16(at: directory, order) else {
            return nil
        }
        for index in 0..<count {
            let entry = directory + 2 + index * 12
            guard let tag = tiff.uint16(at: entry, order) else { return nil }
            guard tag == TIFFTag.orientation.rawValue else { continue }
            guard tiff.uint16(at: entry + 2, order) == self.shortType, tiff.uint16(at: entry + 8, order) != nil else {
                return nil
            }
            return entry + 8
        }
        return nil
    }
}

// MARK: - Fields

/// The commonly used fields of an EXIF block.
struct EXIFFields {
    private let structure: TIFFStructure
    private let main: TIFFDirectory?
    private let details: TIFFDirectory?

    init(_ structure: TIFFStructure) {
        self.structure = structure
        self.main = structure.first
        self.details = structure.first.flatMap { structure.directory(.exifDirectory, of: $0) }
    }

    var cameraMake: String? { self.main?.field(.make)?.text }
    var cameraModel: String? { self.main?.field(.model)?.text }
    var lensModel: String? { self.details?.field(.lensModel)?.text }

    var dateTaken: ImageMetadata.CaptureDate? {
        self.date(.dateTaken, .fractionTaken, .offsetTaken)
            ?? self.date(.dateDigitised, .fractionDigitised, .offsetDigitised)
    }

    private func date(_ tag: TIFFTag, _ fraction: TIFFTag, _ offset: TIFFTag) -> ImageMetadata.CaptureDate? {
        guard let details, let text = details.field(tag)?.text else { return nil }
        return ImageMetadata.CaptureDate(
            text,
            fraction: details.field(fraction)?.text,
            offset: details.field(offset)?.text
        )
    }

    var density: ImageMetadata.PixelDensity? {
        guard let main, let horizontal = main.field(.horizontalResolution)?.numbers(1)?[0] else { return nil }
        let vertical = main.field(.verticalResolution)?.numbers(1)?[0]
        let unit: ImageMetadata.PixelDensity.Unit
        switch main.field(.resolutionUnit)?.integers(1)?[0] {
        case nil, 2: unit = .inch
        case 3: unit = .centimeter
        default: return nil
        }
        return ImageMetadata.PixelDensity(horizontal: horizontal, vertical: vertical ?? horizontal, unit: unit)
    }

    var position: ImageMetadata.GeographicPosition? {
        guard let main, let directory = self.structure.directory(.positionDirectory, of: main),
            let latitude = Self.degrees(directory, .latitude, .latitudeReference, ["N": 1, "S": -1]),
            let longitude = Self.degrees(directory, .longitude, .longitudeReference, ["E": 1, "W": -1])
        else { return nil }
        var altitude = directory.field(.altitude)?.numbers(1)?[0]
        // Values 1 and 3 mean below the sea and below the ellipsoid.
        if let below = directory.field(.altitudeReference)?.integers(1)?[0], below % 2 == 1 {
            altitude = altitude.map { -$0 }
        }
        return ImageMetadata.GeographicPosition(latitude: latitude, longitude: longitude, altitude: altitude)
    }

    /// Returns degrees, minutes and seconds as degrees; `nil` without the letter that gives the sign.
    private static func degrees(
        _ directory: TIFFDirectory,
        _ tag: TIFFTag,
        _ reference: TIFFTag,
        _ signs: [String: Double]
    ) -> Double? {
        guard let sign = directory.field(reference)?.text.flatMap({ signs[$0] }),
            let parts = directory.field(tag)?.numbers(3), let degrees = parts[0]
        else { return nil }
        return sign * (degrees + (parts[1] ?? 0) / 60 + (parts[2] ?? 0) / 3_600)
    }
}

// MARK: - Carrying over

extension EXIF {
    /// The fields that are not copied to another file.
    ///
    /// They are offsets of other parts of this file, properties of its pixels, and data that only the maker's programs
    /// can read.
    private static let droppedTags: Set<Int> = {
        // The stored image: its size, its samples, its strips and tiles, its thumbnails, its colour space.
        var tags: Set<Int> = [
            0x00FE, 0x00FF, 0x0100, 0x0101, 0x0102, 0x0103, 0x0106, 0x0111, 0x0115, 0x0116, 0x0117, 0x011C, 0x0142,
            0x0143, 0x0144, 0x0145, 0x014A, 0x0201, 0x0202, 0xA001, 0xA002, 0xA003,
        ]
        // XMP, IPTC, Photoshop's resources and ICC, which have blocks of their own; directories; private data of the
        // maker or the editor, including padding.
        tags.formUnion([0x02BC, 0x83BB, 0x8649, 0x8773, 0x8769, 0x8825, 0xA005, 0x927C, 0xC4A5, 0xC634, 0xEA1C])
        return tags
    }()

    /// Rebuilds the block for upright pixels in another file; `nil` if it has no readable fields.
    ///
    /// The new block contains only the fields that were read. So nothing remains of the thumbnail, the maker's notes
    /// and, unless it is kept, the position.
    static func carriedOver(_ block: Data, keepsPosition: Bool) -> Data? {
        guard let structure = TIFFStructure(block), let first = structure.first else { return nil }
        var main = self.kept(first)
        let details = structure.directory(.exifDirectory, of: first).map { self.kept($0) } ?? []
        let position =
            keepsPosition ? structure.directory(.positionDirectory, of: first).map { self.kept($0) } ?? [] : []
        let fields = main + details + position
        // A valid block is at least as large as its fields together. Fields that share bytes would multiply them.
        guard !fields.isEmpty, fields.reduce(0, { $0 + $1.value.count }) <= block.count else { return nil }
        let order = structure.order
        for index in main.indices where main[index].tag == .orientation {
            let up = self.bytes(Int(Orientation.up.rawValue), 2, order)
            main[index] = TIFFField(tag: .orientation, type: self.shortType, count: 1, value: up, order: order)
        }
        return self.structure(of: main, details, position, order)
    }

    /// Returns the fields of a directory to copy, the first one of each tag.
    private static func kept(_ directory: TIFFDirectory) -> [TIFFField] {
        var seen = self.droppedTags
        return directory.fields.filter { $0.type != 13 && seen.insert($0.tag.rawValue).inserted }
    }

    private static func structure(
        of main: [TIFFField],
        _ details: [TIFFField],
        _ position: [TIFFField],
        _ order: ByteOrder
    ) -> Data {
        func pointer(_ tag: TIFFTag, to offset: Int) -> TIFFField {
            TIFFField(tag: tag, type: 4, count: 1, value: self.bytes(offset, 4, order), order: order)
        }
        let children = [(TIFFTag.exifDirectory, details), (.positionDirectory, position)].filter { !$0.1.isEmpty }
        var next = 8 + self.byteCount(of: main) + children.count * 12
        var main = main
        for (tag, fields) in children {
            main.append(pointer(tag, to: next))
            next += self.byteCount(of: fields)
        }
        var data = Data((order == .little ? "II" : "MM").utf8) + self.bytes(42, 2, order) + self.bytes(8, 4, order)
        for fields in [main] + children.map(\.1) { self.append(fields, to: &data, order) }
        return data
    }

    /// Returns the size of a directory with its values, which begin at even offsets.
    private static func byteCount(of fields: [TIFFField]) -> Int {
        fields.reduce(2 + 4) { $0 + 12 + ($1.value.count > 4 ? ($1.value.count + 1) / 2 * 2 : 0) }
    }

    private static func append(_ fields: [TIFFField], to data: inout Data, _ order: ByteOrder) {
        var place = data.count + 2 + fields.count * 12 + 4
        var values = Data()
        data += self.bytes(fields.count, 2, order)
        for field in fields.sorted(by: { $0.tag.rawValue < $1.tag.rawValue }) {
            data += self.bytes(field.tag.rawValue, 2, order) + self.bytes(field.type, 2, order)
            data += self.bytes(field.count, 4, order)
            if field.value.count <= 4 {
                data += field.value + Data(count: 4 - field.value.count)
            } else {
                data += self.bytes(place, 4, order)
                values += field.value + Data(count: field.value.count % 2)
                place += (field.value.count + 1) / 2 * 2
            }
        }
        data += self.bytes(0, 4, order) + values
    }

    private static func bytes(_ number: Int, _ count: Int, _ order: ByteOrder) -> Data {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
        return Data(order == .little ? bytes : bytes.reversed())
    }
}
