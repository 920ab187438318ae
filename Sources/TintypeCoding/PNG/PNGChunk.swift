import CDeflate

/// One chunk of a PNG: where it lies in the file, and whether all of it is there.
///
/// Source: W3C PNG, third edition, section 5.3.
struct PNGChunk {
    /// The four letters of a chunk's type as a number.
    struct Kind: Equatable {
        let rawValue: UInt32

        // Written as numbers, which cost nothing to compare: a hostile file has millions of chunks.
        /// `IHDR`.
        static let imageHeader = Kind(rawValue: 0x4948_4452)
        /// `PLTE`.
        static let palette = Kind(rawValue: 0x504C_5445)
        /// `tRNS`.
        static let transparency = Kind(rawValue: 0x7452_4E53)
        /// `IDAT`.
        static let pixels = Kind(rawValue: 0x4944_4154)
        /// `IEND`.
        static let end = Kind(rawValue: 0x4945_4E44)
        /// `eXIf`.
        static let exif = Kind(rawValue: 0x6558_4966)
        /// `iCCP`.
        static let colorProfile = Kind(rawValue: 0x6943_4350)
        /// `iTXt`.
        static let text = Kind(rawValue: 0x6954_5874)
        /// `acTL`.
        static let animationControl = Kind(rawValue: 0x6163_544C)
        /// `fcTL`.
        static let frameControl = Kind(rawValue: 0x6663_544C)
        /// `fdAT`.
        static let framePixels = Kind(rawValue: 0x6664_4154)

        /// Whether a decoder that does not know the chunk must not go on.
        var isCritical: Bool { self.rawValue & 0x2000_0000 == 0 }
    }

    /// Length, type and checksum.
    static let overhead = 12
    /// The largest length that the specification allows.
    static let maximumLength = Int(Int32.max)

    let kind: Kind
    /// Where the content begins.
    let start: Int
    /// The length that the chunk says it has; it may reach over the end of the file.
    let length: Int

    /// Where the next chunk begins.
    var next: Int { self.start + self.length + 4 }

    /// The chunk at an offset, or `nil` where not even its length and type are there.
    init?(at offset: Int, in bytes: UnsafeRawBufferPointer) {
        guard offset >= 0, offset + 8 <= bytes.count else { return nil }
        self.kind = Kind(rawValue: bytes.bigEndian(at: offset + 4))
        self.start = offset + 8
        self.length = Int(bytes.bigEndian(at: offset) as UInt32)
    }

    /// Whether the whole chunk with its checksum is in the file.
    func isComplete(in bytes: UnsafeRawBufferPointer) -> Bool {
        self.length <= Self.maximumLength && self.next <= bytes.count
    }

    /// The content, cut at the end of the file.
    func content(of bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let end = min(self.start + self.length, bytes.count)
        return UnsafeRawBufferPointer(rebasing: bytes[min(self.start, end)..<end])
    }

    /// Whether the chunk is whole and its checksum is right.
    func isSound(in bytes: UnsafeRawBufferPointer) -> Bool {
        guard self.isComplete(in: bytes) else { return false }
        let checksum = libdeflate_crc32(0, bytes.baseAddress.map { $0 + self.start - 4 }, self.length + 4)
        return checksum == bytes.bigEndian(at: self.start + self.length)
    }
}

/// Reads of numbers, the highest byte first.
extension UnsafeRawBufferPointer {
    /// The number at an offset; the caller has checked that it is there.
    func bigEndian<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Number {
        Number(bigEndian: self.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
}
