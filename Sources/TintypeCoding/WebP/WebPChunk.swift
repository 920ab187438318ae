/// The start of a chunk: its name, and the size of what follows.
struct WebPChunk {
    /// The names of chunks, as numbers with the first letter lowest.
    enum Name {
        static let animation = Self.number("ANIM")
        static let frame = Self.number("ANMF")
        static let alpha = Self.number("ALPH")
        static let lossy = Self.number("VP8 ")
        static let lossless = Self.number("VP8L")
        static let extended = Self.number("VP8X")
        static let colorProfile = Self.number("ICCP")
        static let exif = Self.number("EXIF")

        private static func number(_ name: StaticString) -> UInt32 {
            (0..<4).reversed().reduce(0) { $0 << 8 | UInt32(name.utf8Start[$1]) }
        }
    }

    /// The bytes of a chunk's name and size.
    static let headByteCount = 8

    let name: UInt32
    /// The first byte of the name.
    let start: Int
    /// The bytes of its content, without padding.
    let body: Range<Int>

    /// Reads the head at `offset`, or `nil` when fewer than eight bytes are there.
    init?(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        guard offset >= 0, bytes.count - offset >= Self.headByteCount else { return nil }
        self.name = bytes.uint32(at: offset)
        self.start = offset
        let body = offset + Self.headByteCount
        self.body = body..<body + Int(bytes.uint32(at: offset + 4))
    }

    /// Where the next chunk begins: chunks are padded to an even size.
    var next: Int { self.body.upperBound + self.body.count % 2 }

    /// Whether it is VP8 or VP8L.
    var isPicture: Bool { self.name == Name.lossy || self.name == Name.lossless }
}

extension UnsafeRawBufferPointer {
    /// The number of four bytes at `offset`, the lowest first; the caller has checked the bounds.
    func uint32(at offset: Int) -> UInt32 {
        UInt32(littleEndian: self.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// The number of three bytes at `offset`, the lowest first; the caller has checked the bounds.
    func uint24(at offset: Int) -> Int {
        Int(self[offset]) | Int(self[offset + 1]) << 8 | Int(self[offset + 2]) << 16
    }
}
