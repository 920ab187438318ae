// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The part of an XMP packet that can be copied to another file.
///
/// A packet is untrusted XML. It is read once, tag by tag, without building a tree. A packet that cannot be read this
/// way is not copied: one with a document type, or in another encoding than UTF-8. Source: XMP specification, parts 1
/// to 3.
enum XMPPacket {
    /// The properties that describe only the stored image.
    ///
    /// They are its orientation, its size, its colour space, its thumbnails, and the place of the rest of its packet.
    private static let droppedNames: Set<String> = [
        "orientation", "imagewidth", "imagelength", "pixelxdimension", "pixelydimension", "colorspace", "thumbnails",
        "pageinfo", "hasextendedxmp",
    ]

    /// Returns the packet without properties of the stored image and, unless they are kept, without coordinates.
    ///
    /// Coordinates are all properties whose names begin with `GPS`, in any namespace. Text stays, including place
    /// names. Returns `nil` if the packet cannot be read.
    static func carriedOver(_ packet: Data, keepsPosition: Bool) -> Data? {
        // Some writers end the packet like a C string.
        var bytes = Array(packet)
        while bytes.last == 0 { bytes.removeLast() }
        var reader = Reader(bytes: bytes) { name in
            Self.droppedNames.contains(name) || !keepsPosition && name.hasPrefix("gps")
        }
        return reader.read()
    }

    /// Reads the tags of a packet, and copies the ones that are kept.
    private struct Reader {
        private static let (open, close) = (UInt8(ascii: "<"), UInt8(ascii: ">"))

        private let bytes: [UInt8]
        /// Returns whether to drop the property with a name, which is in lower case and without its prefix.
        private let isDropped: (String) -> Bool
        private var offset = 0
        private var output: [UInt8] = []
        /// The number of open elements.
        private var depth = 0
        /// The depth at which the element that is being dropped began.
        private var droppedDepth: Int?

        init(bytes: [UInt8], isDropped: @escaping (String) -> Bool) {
            self.bytes = bytes
            self.isDropped = isDropped
        }

        mutating func read() -> Data? {
            // In UTF-16 and UTF-32 each ASCII letter contains a zero byte.
            guard !self.bytes.contains(0) else { return nil }
            self.output.reserveCapacity(self.bytes.count)
            while self.offset < self.bytes.count {
                guard self.bytes[self.offset] == Self.open else {
                    let end = self.bytes[self.offset...].firstIndex(of: Self.open) ?? self.bytes.count
                    self.take(to: end)
                    continue
                }
                guard self.readTag() else { return nil }
            }
            return self.depth == 0 ? Data(self.output) : nil
        }

        /// Moves to `end`, and copies the bytes up to there unless they belong to a dropped element.
        private mutating func take(to end: Int) {
            if self.droppedDepth == nil { self.output += self.bytes[self.offset..<end] }
            self.offset = end
        }

        private mutating func readTag() -> Bool {
            if self.has("<!--") { return self.skip(to: "-->") }
            if self.has("<![CDATA[") { return self.skip(to: "]]>") }
            if self.has("<?") { return self.skip(to: "?>") }
            // A document type may declare entities whose content is elsewhere.
            if self.has("<!") { return false }
            return self.has("</") ? self.readEnd() : self.readStart()
        }

        private func has(_ text: StaticString) -> Bool {
            let count = text.utf8CodeUnitCount
            guard self.bytes.count - self.offset >= count else { return false }
            return (0..<count).allSatisfy { self.bytes[self.offset + $0] == text.utf8Start[$0] }
        }

        private mutating func skip(to end: StaticString) -> Bool {
            let count = end.utf8CodeUnitCount
            let last = UnsafeBufferPointer(start: end.utf8Start, count: count)
            var place = self.offset
            while place + count <= self.bytes.count {
                if self.bytes[place] == last[0], self.bytes[place..<place + count].elementsEqual(last) {
                    self.take(to: place + count)
                    return true
                }
                place += 1
            }
            return false
        }

        private mutating func readEnd() -> Bool {
            guard self.depth > 0, let end = self.bytes[self.offset...].firstIndex(of: Self.close) else { return false }
            self.depth -= 1
            self.take(to: end + 1)
            if self.droppedDepth == self.depth { self.droppedDepth = nil }
            return true
        }

        /// Reads a start tag, or the tag of an element without content.
        private mutating func readStart() -> Bool {
            var place = self.offset + 1
            guard let name = self.name(at: &place) else { return false }
            var tag = Array(self.bytes[self.offset..<place])
            while true {
                let blank = place
                self.passBlanks(&place)
                guard place < self.bytes.count else { return false }
                if self.bytes[place] == Self.close || self.bytes[place] == UInt8(ascii: "/") {
                    tag += self.bytes[blank..<place]
                    break
                }
                guard place > blank, let attribute = self.attribute(at: &place) else { return false }
                if !self.isDropped(attribute) { tag += self.bytes[blank..<place] }
            }
            let isEmpty = self.bytes[place] == UInt8(ascii: "/")
            if isEmpty { place += 1 }
            guard place < self.bytes.count, self.bytes[place] == Self.close else { return false }
            tag += isEmpty ? Array("/>".utf8) : [Self.close]
            self.offset = place + 1
            let drops = self.isDropped(name)
            if self.droppedDepth == nil, !drops { self.output += tag }
            guard !isEmpty else { return true }
            if drops, self.droppedDepth == nil { self.droppedDepth = self.depth }
            self.depth += 1
            return true
        }

        /// Returns the name of an attribute, and moves `place` behind its value.
        private func attribute(at place: inout Int) -> String? {
            guard let name = self.name(at: &place) else { return nil }
            self.passBlanks(&place)
            guard place < self.bytes.count, self.bytes[place] == UInt8(ascii: "=") else { return nil }
            place += 1
            self.passBlanks(&place)
            guard place < self.bytes.count, [UInt8(ascii: "\""), UInt8(ascii: "'")].contains(self.bytes[place]),
                let end = self.bytes[(place + 1)...].firstIndex(of: self.bytes[place])
            else { return nil }
            place = end + 1
            return name
        }

        /// Returns a name without its prefix, in lower case, and moves `place` behind it.
        private func name(at place: inout Int) -> String? {
            let start = place
            while place < self.bytes.count, !Self.isBlank(self.bytes[place]),
                !"=/><\"'".utf8.contains(self.bytes[place])
            {
                place += 1
            }
            guard place > start else { return nil }
            let name = self.bytes[start..<place]
            // A namespace can be declared with any prefix.
            if name.elementsEqual("xmlns".utf8) || name.starts(with: "xmlns:".utf8) { return "xmlns" }
            let local = name.lastIndex(of: UInt8(ascii: ":")).map { name[($0 + 1)...] } ?? name
            return String(decoding: local, as: UTF8.self).lowercased()
        }

        private func passBlanks(_ place: inout Int) {
            while place < self.bytes.count, Self.isBlank(self.bytes[place]) { place += 1 }
        }

        private static func isBlank(_ byte: UInt8) -> Bool {
            [0x09, 0x0A, 0x0D, 0x20].contains(byte)
        }
    }
}

extension EncodeOptions.Metadata {
    /// Creates the metadata that may be copied from one file to another whose pixels are upright and may have another
    /// size.
    ///
    /// - EXIF is rebuilt from the fields that could be read. Its orientation becomes upright. The thumbnail and the
    ///   fields that describe the stored samples are left out. So are the maker's notes, which only the maker's
    ///   programs can read and which may contain a position. The directory of the position is left out unless the
    ///   position is kept.
    /// - XMP loses the properties with the same meaning, including properties whose names begin with `GPS`, in any
    ///   namespace. A packet that cannot be read is left out completely. Text stays, including place names.
    /// - IPTC is not copied, because no encoder writes it. GIF has no metadata blocks at all. The image supplies the
    ///   colour profile.
    ///
    /// ```swift
    /// let metadata = try await loader.metadata(for: request)
    /// let options = EncodeOptions(metadata: .init(carryingOver: metadata))
    /// let file = try await loader.encode(image, as: .webp, options: options)
    /// ```
    ///
    /// - Parameters:
    ///   - metadata: The metadata of the original file.
    ///   - keepsPosition: Whether the coordinates are copied too; `false` by default.
    public init(carryingOver metadata: ImageMetadata, keepsPosition: Bool = false) {
        self.init(
            exif: metadata.exif.flatMap { EXIF.carriedOver($0, keepsPosition: keepsPosition) },
            xmp: metadata.xmp.flatMap { XMPPacket.carriedOver($0, keepsPosition: keepsPosition) }
        )
    }
}
