// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// The segments of a JPEG that hold metadata; of each kind the first readable one.
///
/// Sources: JFIF 1.02; Exif 2.32, section 4.7; XMP specification, part 3, 1.1.3; Photoshop file formats, image
/// resources.
struct JPEGMetadataBlocks {
    private static let packetName = "http://ns.adobe.com/xap/1.0/\0" as StaticString
    private static let resourcesName = "Photoshop 3.0\0" as StaticString
    /// The number of the IPTC-NAA resource.
    private static let recordsNumber = 0x0404

    private var exif: Data?
    private var xmp: Data?
    private var density: ImageMetadata.PixelDensity?
    /// The resources, which may continue in the next segment.
    private var resources = Data()

    /// Reads the content of one segment.
    mutating func read(_ segment: Data, marker: UInt8) {
        switch marker {
        case 0xE0 where segment.has("JFIF\0", at: 0):
            if self.density == nil { self.density = Self.density(segment) }
        case 0xE1 where segment.has("Exif\0\0", at: 0):
            if self.exif == nil, TIFFStructure(segment) != nil { self.exif = segment }
        case 0xE1 where segment.has(Self.packetName, at: 0):
            if self.xmp == nil {
                self.xmp = segment.slice(from: Self.packetName.utf8CodeUnitCount, to: segment.count)
            }
        case 0xED where segment.has(Self.resourcesName, at: 0):
            self.resources += segment.slice(from: Self.resourcesName.utf8CodeUnitCount, to: segment.count)
        default: break
        }
    }

    func metadata(orientation: Orientation) -> ImageMetadata {
        ImageMetadata(
            exif: self.exif,
            xmp: self.xmp,
            iptc: Self.records(in: self.resources),
            density: self.density,
            orientation: orientation
        )
    }

    /// Returns the pixel density; `nil` without a unit, because the numbers then give only the shape of a pixel.
    private static func density(_ segment: Data) -> ImageMetadata.PixelDensity? {
        guard let unit = segment.byte(at: 7), unit == 1 || unit == 2, let horizontal = segment.uint16(at: 8),
            let vertical = segment.uint16(at: 10)
        else { return nil }
        return ImageMetadata.PixelDensity(
            horizontal: Double(horizontal),
            vertical: Double(vertical),
            unit: unit == 1 ? .inch : .centimeter
        )
    }

    /// Returns the IPTC records.
    ///
    /// A resource has a signature, a number, a name and its content; the last two are padded to an even size.
    private static func records(in resources: Data) -> Data? {
        var offset = 0
        while resources.has("8BIM", at: offset), let number = resources.uint16(at: offset + 4),
            let nameLength = resources.byte(at: offset + 6)
        {
            let start = offset + 6 + (Int(nameLength) + 2) / 2 * 2
            guard let count = resources.uint32(at: start), start + 4 + count <= resources.count else { return nil }
            if number == self.recordsNumber { return resources.slice(from: start + 4, to: start + 4 + count) }
            offset = start + 4 + (count + 1) / 2 * 2
        }
        return nil
    }
}
