// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// Changes values of an EXIF block in place, so that all other data, such as the maker's notes, stays where it is.
///
/// Source: Exif 2.32, section 4.5 (TIFF structure, thumbnails) and 4.6. Untrusted offsets are followed only within the
/// block.
struct EXIFEditor {
    /// The block, with or without the prefix that JPEG adds.
    private(set) var block: Data
    private let order: ByteOrder
    /// The offset of the TIFF structure in the block.
    private let origin: Int

    private static let orientationTag = 0x0112
    private static let detailsTag = 0x8769
    /// The tags of the image's size, in the first directory and in the directory of details.
    private static let widthTags = (0x0100, 0xA002)
    private static let heightTags = (0x0101, 0xA003)
    /// The tags of a thumbnail's offset and length: as JPEG, and as a strip of samples.
    private static let thumbnailTags = [(0x0201, 0x0202), (0x0111, 0x0117)]
    private static let (short, long) = (3, 4)

    /// The place of one directory's fields and of the offset of the next directory, from the start of the structure.
    private struct Directory {
        let start: Int
        let count: Int
        var next: Int { self.start + 2 + self.count * 12 }
        var range: Range<Int> { self.start..<self.next + 4 }
    }

    /// Opens a block; `nil` if it has no directory.
    init?(_ block: Data) {
        guard let structure = TIFFStructure(block) else { return nil }
        self.block = Data(block)
        self.order = structure.order
        self.origin = block.count - structure.bytes.count
        guard self.first != nil else { return nil }
    }

    /// Returns a block that contains only the orientation.
    static func block(saying orientation: Orientation) -> Data {
        let header: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, 8]
        let field: [UInt8] = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation.rawValue, 0, 0]
        return Data(header + [0, 1] + field + [0, 0, 0, 0])
    }

    /// Sets the orientation.
    ///
    /// Returns `false` if the block does not have this field.
    mutating func setOrientation(_ orientation: Orientation) -> Bool {
        guard let first else { return false }
        return self.set(Self.orientationTag, of: first, to: Int(orientation.rawValue))
    }

    /// Sets the image sizes that the block contains.
    mutating func setSize(width: Int, height: Int) {
        guard let first else { return }
        _ = self.set(Self.widthTags.0, of: first, to: width)
        _ = self.set(Self.heightTags.0, of: first, to: height)
        guard let details = self.value(Self.detailsTag, of: first).flatMap({ self.directory(at: $0) }) else { return }
        _ = self.set(Self.widthTags.1, of: details, to: width)
        _ = self.set(Self.heightTags.1, of: details, to: height)
    }

    /// Removes the directory of the thumbnail and the data that it points to.
    ///
    /// - Returns: `false` if they overlap the first directory or the header, so that they cannot be erased.
    mutating func removeThumbnail() -> Bool {
        guard let first, let offset = self.uint32(at: first.next), offset != 0 else { return true }
        self.write(0, 4, at: first.next)
        guard let second = self.directory(at: offset) else { return true }
        var ranges = [second.range]
        for (start, count) in Self.thumbnailTags {
            guard let start = self.value(start, of: second), let count = self.value(count, of: second) else { continue }
            ranges.append(start..<start + count)
        }
        guard ranges.allSatisfy({ $0.lowerBound >= 8 && !$0.overlaps(first.range) }) else { return false }
        for range in ranges {
            let end = min(range.upperBound, self.count)
            for place in range.lowerBound..<max(range.lowerBound, end) { self.block[self.origin + place] = 0 }
        }
        // They are usually the last data in the block.
        for range in ranges.sorted(by: { $0.upperBound > $1.upperBound }) where range.upperBound >= self.count {
            self.block = self.block.prefix(self.origin + min(range.lowerBound, self.count))
        }
        return true
    }

    // MARK: Directories

    /// The number of bytes of the structure.
    private var count: Int { self.block.count - self.origin }

    private var first: Directory? { self.uint32(at: 4).flatMap { self.directory(at: $0) } }

    /// Returns the directory at an offset; `nil` unless all of it is in the block.
    private func directory(at offset: Int) -> Directory? {
        guard offset >= 8, let count = self.uint16(at: offset) else { return nil }
        let directory = Directory(start: offset, count: count)
        return directory.next + 4 <= self.count ? directory : nil
    }

    /// Returns the place and size in bytes of a field's single value.
    private func place(_ tag: Int, of directory: Directory) -> (offset: Int, byteCount: Int)? {
        for index in 0..<directory.count {
            let field = directory.start + 2 + index * 12
            guard self.uint16(at: field) == tag else { continue }
            guard let type = self.uint16(at: field + 2), self.uint32(at: field + 4) == 1 else { return nil }
            return type == Self.short ? (field + 8, 2) : type == Self.long ? (field + 8, 4) : nil
        }
        return nil
    }

    private func value(_ tag: Int, of directory: Directory) -> Int? {
        guard let (offset, byteCount) = self.place(tag, of: directory) else { return nil }
        return byteCount == 2 ? self.uint16(at: offset) : self.uint32(at: offset)
    }

    /// Sets a value.
    ///
    /// Returns `false` if the directory does not have it.
    private mutating func set(_ tag: Int, of directory: Directory, to number: Int) -> Bool {
        guard let (offset, byteCount) = self.place(tag, of: directory) else { return false }
        self.write(number, byteCount, at: offset)
        return true
    }

    private func uint16(at offset: Int) -> Int? { self.block.uint16(at: self.origin + offset, self.order) }
    private func uint32(at offset: Int) -> Int? { self.block.uint32(at: self.origin + offset, self.order) }

    private mutating func write(_ number: Int, _ count: Int, at offset: Int) {
        for index in 0..<count {
            let place = self.order == .little ? index : count - 1 - index
            self.block[self.origin + offset + place] = UInt8(truncatingIfNeeded: number >> (index * 8))
        }
    }
}
