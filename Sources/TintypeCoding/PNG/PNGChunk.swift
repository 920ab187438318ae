// SPDX-License-Identifier: Apache-2.0

import CTintypeDeflate
import TintypeImage

/// One chunk of a PNG: its place in the file, and its length, which may exceed the file.
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
        /// `pHYs`.
        static let density = Kind(rawValue: 0x7048_5973)
        /// `acTL`.
        static let animationControl = Kind(rawValue: 0x6163_544C)
        /// `fcTL`.
        static let frameControl = Kind(rawValue: 0x6663_544C)
        /// `fdAT`.
        static let framePixels = Kind(rawValue: 0x6664_4154)

        /// Whether a decoder that does not know the chunk must stop.
        var isCritical: Bool { self.rawValue & 0x2000_0000 == 0 }
    }

    /// The bytes of the length, the type and the checksum.
    static let overhead = 12
    /// The largest length that the specification allows.
    static let maximumLength = Int(Int32.max)

    let kind: Kind
    /// The offset of the content.
    let start: Int
    /// The length that the chunk declares; it may exceed the file.
    let length: Int

    /// The offset of the next chunk.
    var next: Int { self.start + self.length + 4 }

    /// Reads the head of the chunk at an offset; `nil` if its length and type are cut.
    init?(at offset: Int, in bytes: UnsafeRawBufferPointer) {
        guard offset >= 0, offset + 8 <= bytes.count else { return nil }
        self.kind = Kind(rawValue: bytes.bigEndian(at: offset + 4))
        self.start = offset + 8
        self.length = Int(bytes.bigEndian(at: offset) as UInt32)
    }

    /// Returns whether the file contains the whole chunk with its checksum.
    func isComplete(in bytes: UnsafeRawBufferPointer) -> Bool {
        self.length <= Self.maximumLength && self.next <= bytes.count
    }

    /// Returns the content, cut at the end of the file.
    func content(of bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let end = min(self.start + self.length, bytes.count)
        return UnsafeRawBufferPointer(rebasing: bytes[min(self.start, end)..<end])
    }

    /// Returns whether the chunk is complete and its checksum is right.
    func isSound(in bytes: UnsafeRawBufferPointer) -> Bool {
        guard self.isComplete(in: bytes) else { return false }
        let checksum = libdeflate_crc32(0, bytes.baseAddress.map { $0 + self.start - 4 }, self.length + 4)
        return checksum == bytes.bigEndian(at: self.start + self.length)
    }
}

/// Reads of numbers, highest byte first.
extension UnsafeRawBufferPointer {
    /// Returns the number at an offset; the caller must check the bounds.
    func bigEndian<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Number {
        Number(bigEndian: self.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
}

/// Splits bytes that arrive in pieces into chunks, without keeping the bytes.
struct PNGChunkStream {
    /// An event in the stream of bytes.
    enum Event {
        /// A chunk begins.
        case begin(PNGChunk.Kind)
        /// The next part of its content that has arrived.
        case content(PNGChunk.Kind, UnsafeRawBufferPointer)
        /// The chunk has ended; `isSound` says whether the checksum is right.
        case end(PNGChunk.Kind, isSound: Bool)
    }

    private enum State {
        case beforeChunk
        case inContent(PNGChunk.Kind, missing: Int)
        case inChecksum(PNGChunk.Kind)
    }

    private var state = State.beforeChunk
    /// The part of a length and type, or of a checksum, that has arrived.
    private var partial: UInt64 = 0
    private var partialCount = 0
    private var checksum: UInt32 = 0

    /// Reads up to the next event.
    ///
    /// - Parameter input: The bytes that have arrived; the method removes the used ones from the front.
    /// - Returns: The event, or `nil` if more bytes are needed.
    /// - Throws: `CodingError` for a chunk that is too long.
    mutating func next(_ input: inout UnsafeRawBufferPointer) throws(CodingError) -> Event? {
        switch self.state {
        case .beforeChunk:
            guard let start = self.number(of: 8, from: &input) else { return nil }
            let kind = PNGChunk.Kind(rawValue: UInt32(truncatingIfNeeded: start))
            let length = Int(start >> 32)
            // Nothing behind the type of the end chunk is used, not even its length.
            guard length <= PNGChunk.maximumLength || kind == .end else {
                throw .corrupt(.png, "a chunk is too long")
            }
            self.state = .inContent(kind, missing: length)
            self.checksum = withUnsafeBytes(of: kind.rawValue.bigEndian) { libdeflate_crc32(0, $0.baseAddress, 4) }
            return .begin(kind)
        case .inContent(let kind, let missing):
            guard missing > 0 else {
                self.state = .inChecksum(kind)
                return try self.next(&input)
            }
            guard !input.isEmpty else { return nil }
            let count = min(missing, input.count)
            let content = UnsafeRawBufferPointer(rebasing: input[..<count])
            input = UnsafeRawBufferPointer(rebasing: input[count...])
            self.checksum = libdeflate_crc32(self.checksum, content.baseAddress, count)
            self.state = .inContent(kind, missing: missing - count)
            return .content(kind, content)
        case .inChecksum(let kind):
            guard let stored = self.number(of: 4, from: &input) else { return nil }
            self.state = .beforeChunk
            return .end(kind, isSound: stored == UInt64(self.checksum))
        }
    }

    /// Returns a number of `count` bytes once all of them have arrived; `nil` before.
    private mutating func number(of count: Int, from input: inout UnsafeRawBufferPointer) -> UInt64? {
        while self.partialCount < count, let byte = input.first {
            self.partial = self.partial << 8 | UInt64(byte)
            self.partialCount += 1
            input = UnsafeRawBufferPointer(rebasing: input.dropFirst())
        }
        guard self.partialCount == count else { return nil }
        defer {
            self.partial = 0
            self.partialCount = 0
        }
        return self.partial
    }
}
