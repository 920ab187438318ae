import FoundationEssentials

/// What becomes of an XMP packet when it goes with another file.
///
/// A packet is XML of strangers. It is read once, tag by tag, without a tree; what can't be read so, such as a document type or
/// another encoding than UTF-8, is not carried over. Source: XMP specification, parts 1 to 3.
enum XMPPacket {
    /// What describes the stored image and no other: its turn, its size, its colour space, small copies of it, and
    /// where the rest of its packet is.
    private static let droppedNames: Set<String> = [
        "orientation", "imagewidth", "imagelength", "pixelxdimension", "pixelydimension", "colorspace", "thumbnails",
        "pageinfo", "hasextendedxmp",
    ]

    /// The packet without what describes the stored image and, unless it is kept, without coordinates: all properties
    /// whose names begin with `GPS`, whatever their namespace; `nil` where it can't be read.
    ///
    /// Words stay, names of places among them.
    static func carriedOver(_ packet: Data, keepsPosition: Bool) -> Data? {
        // Some writers end it as C ends a text.
        var bytes = Array(packet)
        while bytes.last == 0 { bytes.removeLast() }
        var reader = Reader(bytes: bytes) { name in
            Self.droppedNames.contains(name) || !keepsPosition && name.hasPrefix("gps")
        }
        return reader.read()
    }

    /// Goes through the tags of a packet, and takes over what is kept.
    private struct Reader {
        private static let (open, close) = (UInt8(ascii: "<"), UInt8(ascii: ">"))

        private let bytes: [UInt8]
        /// Whether a property is left out: told its name in lower case, without its prefix.
        private let isDropped: (String) -> Bool
        private var offset = 0
        private var output: [UInt8] = []
        /// The elements that are open.
        private var depth = 0
        /// How many were open when one began that is left out.
        private var droppedDepth: Int?

        init(bytes: [UInt8], isDropped: @escaping (String) -> Bool) {
            self.bytes = bytes
            self.isDropped = isDropped
        }

        mutating func read() -> Data? {
            // In UTF-16 and UTF-32 each letter has a zero.
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

        /// Takes over the bytes up to `end`, unless they are of an element that is left out.
        private mutating func take(to end: Int) {
            if self.droppedDepth == nil { self.output += self.bytes[self.offset..<end] }
            self.offset = end
        }

        private mutating func readTag() -> Bool {
            if self.has("<!--") { return self.skip(to: "-->") }
            if self.has("<![CDATA[") { return self.skip(to: "]]>") }
            if self.has("<?") { return self.skip(to: "?>") }
            // A document type may give names to what stands elsewhere.
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

        /// Reads a start tag, or one of an element without content.
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

        /// The name of an attribute; `place` moves behind its value.
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

        /// A name without its prefix, in lower case.
        private func name(at place: inout Int) -> String? {
            let start = place
            while place < self.bytes.count, !Self.isBlank(self.bytes[place]),
                !"=/><\"'".utf8.contains(self.bytes[place])
            {
                place += 1
            }
            guard place > start else { return nil }
            let name = self.bytes[start..<place]
            // A namespace is declared under any name.
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
    /// What may go from one file to another whose pixels are upright and may have another size.
    ///
    /// * EXIF is put together anew from the fields that could be read. The orientation becomes upright. Left out are the
    ///   thumbnail, the maker's notes, which only the maker's programs can read and which may hold a position of their own,
    ///   and what describes the stored samples. The directory of the position is left out unless it is kept.
    /// * XMP loses the properties of the same meaning, those included whose names begin with `GPS`, in any
    ///   namespace; a packet that can't be read is left out whole. Words stay, names of places among them.
    /// * IPTC has no place among the blocks that are written, and GIF has none for any. The colour profile is that of the
    ///   image.
    ///
    /// - Parameters:
    ///   - metadata: What a file says.
    ///   - keepsPosition: Whether the coordinates go over as well.
    public init(carryingOver metadata: ImageMetadata, keepsPosition: Bool = false) {
        self.init(
            exif: metadata.exif.flatMap { EXIF.carriedOver($0, keepsPosition: keepsPosition) },
            xmp: metadata.xmp.flatMap { XMPPacket.carriedOver($0, keepsPosition: keepsPosition) }
        )
    }
}
