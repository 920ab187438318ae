// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The directories of an EXIF block, read from untrusted bytes.
///
/// It reads the directories that a field names, and never follows a directory to the next one. So no offsets can lead
/// it into a cycle. Source: TIFF 6.0, section 2; Exif 2.32, section 4.6.2.
struct TIFFStructure {
    /// The most fields of a directory that are read; cameras write about sixty.
    static let maximumFieldCount = 4_096

    /// The structure from its byte order on.
    let bytes: Data
    let order: ByteOrder

    /// Finds the structure in a block, with or without the prefix that JPEG adds; `nil` if it is missing.
    init?(_ block: Data) {
        let bytes = block.slice(from: block.has("Exif\0\0", at: 0) ? 6 : 0, to: block.count)
        if bytes.has("II", at: 0) {
            self.order = .little
        } else if bytes.has("MM", at: 0) {
            self.order = .big
        } else {
            return nil
        }
        guard bytes.uint16(at: 2, self.order) == 42 else { return nil }
        self.bytes = bytes
    }

    /// The first directory of the structure.
    var first: TIFFDirectory? { self.bytes.uint32(at: 4, self.order).flatMap { TIFFDirectory(self, at: $0) } }

    /// Returns the directory that a field of another directory points to.
    func directory(_ tag: TIFFTag, of directory: TIFFDirectory) -> TIFFDirectory? {
        guard let offset = directory.field(tag)?.integers(1)?.first else { return nil }
        return TIFFDirectory(self, at: offset)
    }
}

/// The number that identifies a field.
struct TIFFTag: Hashable {
    let rawValue: Int

    init(_ rawValue: Int) {
        self.rawValue = rawValue
    }

    static let make = TIFFTag(0x010F)
    static let model = TIFFTag(0x0110)
    static let orientation = TIFFTag(0x0112)
    static let horizontalResolution = TIFFTag(0x011A)
    static let verticalResolution = TIFFTag(0x011B)
    static let resolutionUnit = TIFFTag(0x0128)
    static let exifDirectory = TIFFTag(0x8769)
    static let positionDirectory = TIFFTag(0x8825)
    static let dateTaken = TIFFTag(0x9003)
    static let dateDigitised = TIFFTag(0x9004)
    static let offsetTaken = TIFFTag(0x9011)
    static let offsetDigitised = TIFFTag(0x9012)
    static let fractionTaken = TIFFTag(0x9291)
    static let fractionDigitised = TIFFTag(0x9292)
    static let lensModel = TIFFTag(0xA434)
    // Fields of the position's directory.
    static let latitudeReference = TIFFTag(1)
    static let latitude = TIFFTag(2)
    static let longitudeReference = TIFFTag(3)
    static let longitude = TIFFTag(4)
    static let altitudeReference = TIFFTag(5)
    static let altitude = TIFFTag(6)
}

/// One directory: a number of fields, then the fields of twelve bytes each.
struct TIFFDirectory {
    private let structure: TIFFStructure
    private let start: Int
    private let count: Int

    /// Opens the directory at an offset; `nil` if its number of fields lies outside the block.
    init?(_ structure: TIFFStructure, at offset: Int) {
        // The first eight bytes are the structure's header.
        guard offset >= 8, let count = structure.bytes.uint16(at: offset, structure.order) else { return nil }
        self.structure = structure
        self.start = offset + 2
        let room = max(0, structure.bytes.count - self.start) / 12
        self.count = min(count, room, TIFFStructure.maximumFieldCount)
    }

    /// Returns the first field with a tag whose values are completely in the block.
    func field(_ tag: TIFFTag) -> TIFFField? {
        for index in 0..<self.count where self.tag(at: index) == tag.rawValue {
            if let field = self.field(at: index) { return field }
        }
        return nil
    }

    /// The fields whose values are completely in the block.
    var fields: [TIFFField] { (0..<self.count).compactMap { self.field(at: $0) } }

    private func tag(at index: Int) -> Int? {
        self.structure.bytes.uint16(at: self.start + index * 12, self.structure.order)
    }

    private func field(at index: Int) -> TIFFField? {
        let (bytes, order) = (self.structure.bytes, self.structure.order)
        let place = self.start + index * 12
        guard let tag = bytes.uint16(at: place, order), let type = bytes.uint16(at: place + 2, order),
            let count = bytes.uint32(at: place + 4, order), let size = TIFFField.byteCount(ofType: type), count > 0
        else { return nil }
        let byteCount = count * size
        guard let start = byteCount <= 4 ? place + 8 : bytes.uint32(at: place + 8, order),
            byteCount <= bytes.count, start <= bytes.count - byteCount
        else { return nil }
        return TIFFField(
            tag: TIFFTag(tag),
            type: type,
            count: count,
            value: bytes.slice(from: start, to: start + byteCount),
            order: order
        )
    }
}

/// One field and its values.
struct TIFFField {
    private static let (byte, short, long, rational, signedRational, directory) = (1, 3, 4, 5, 10, 13)
    /// The most bytes of a text; longer texts are cut.
    private static let maximumTextByteCount = 1_024

    let tag: TIFFTag
    let type: Int
    let count: Int
    let value: Data
    let order: ByteOrder

    /// Returns the bytes of one value; `nil` for an unknown type.
    static func byteCount(ofType type: Int) -> Int? {
        switch type {
        // Bytes, texts, undefined bytes, and UTF-8.
        case 1, 2, 6, 7, 129: 1
        case 3, 8: 2
        case 4, 9, 11, 13: 4
        case 5, 10, 12: 8
        default: nil
        }
    }

    /// The text without white space at its ends; `nil` if it is empty or not a text.
    var text: String? {
        guard self.type == 2 || self.type == 129 else { return nil }
        let bytes = self.value.prefix(Self.maximumTextByteCount).prefix { $0 != 0 }
        let text = String(decoding: bytes, as: UTF8.self)
        let trimmed = text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed()
        return trimmed.isEmpty ? nil : String(trimmed)
    }

    /// Returns the first `count` values; `nil` unless they are whole numbers.
    func integers(_ count: Int) -> [Int]? {
        guard self.count >= count else { return nil }
        let numbers = (0..<count).compactMap { index -> Int? in
            switch self.type {
            case Self.byte: self.value.byte(at: index).map { Int($0) }
            case Self.short: self.value.uint16(at: index * 2, self.order)
            case Self.long, Self.directory: self.value.uint32(at: index * 4, self.order)
            default: nil
            }
        }
        return numbers.count == count ? numbers : nil
    }

    /// Returns the first `count` values as real numbers; a value with a denominator of 0, by which cameras mean
    /// unknown, is `nil`.
    func numbers(_ count: Int) -> [Double?]? {
        guard self.type == Self.rational || self.type == Self.signedRational else {
            return self.integers(count).map { $0.map { Double($0) } }
        }
        guard self.count >= count else { return nil }
        return (0..<count).map { index in
            guard let numerator = self.value.uint32(at: index * 8, self.order),
                let denominator = self.value.uint32(at: index * 8 + 4, self.order), denominator != 0
            else { return nil }
            guard self.type == Self.signedRational else { return Double(numerator) / Double(denominator) }
            return Double(Int32(truncatingIfNeeded: numerator)) / Double(Int32(truncatingIfNeeded: denominator))
        }
    }
}
