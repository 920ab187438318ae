// SPDX-License-Identifier: Apache-2.0

import TintypeImage

/// The compressed pixels of an image or frame: the joined contents of the chunks that hold them.
///
/// Source: W3C PNG, third edition, sections 11.2.3 and 11.3.6.3.
struct PNGPixelData {
    private let bytes: UnsafeRawBufferPointer
    private let kind: PNGChunk.Kind
    /// Whether to return the available part of a chunk that is cut, and to ignore checksums.
    private let isLenient: Bool
    private let work: DecodeWork
    /// The offset of the next chunk.
    private(set) var offset: Int

    /// Creates the data whose first chunk begins at `offset`.
    init(_ bytes: UnsafeRawBufferPointer, at offset: Int, isLenient: Bool, work: DecodeWork) {
        self.bytes = bytes
        self.work = work
        self.kind = PNGChunk(at: offset, in: bytes)?.kind ?? .pixels
        self.isLenient = isLenient
        self.offset = offset
    }

    /// Creates the data of the image; for an animation, of its default image.
    ///
    /// - Throws: `CodingError` if the file has no pixels, `CancellationError`.
    init(_ bytes: UnsafeRawBufferPointer, of header: PNGHeader, isLenient: Bool, work: DecodeWork) throws {
        guard let offset = header.pixelsOffset else {
            try PNGPixelData(bytes, at: PNGHeader.firstChunk, isLenient: false, work: work).checkEnd()
            throw CodingError.corrupt(.png, "it has no pixels")
        }
        self.init(bytes, at: offset, isLenient: isLenient, work: work)
    }

    /// Returns the content of the next chunk, which may be empty; `nil` after the last chunk.
    ///
    /// - Throws: `CodingError` for a chunk that is cut or has a wrong checksum; `CancellationError`.
    mutating func next() throws -> UnsafeRawBufferPointer? {
        try self.work.count(PNGHeader.unitsPerChunk)
        guard let chunk = PNGChunk(at: self.offset, in: self.bytes) else {
            // Another chunk must follow, at least the end chunk.
            if self.isLenient { return nil }
            throw CodingError.truncated(.png)
        }
        guard chunk.kind == self.kind else { return nil }
        guard chunk.length <= PNGChunk.maximumLength else {
            if self.isLenient { return nil }
            throw CodingError.corrupt(.png, "a chunk is too long")
        }
        if !self.isLenient {
            guard chunk.isComplete(in: self.bytes) else { throw CodingError.truncated(.png) }
            guard chunk.isSound(in: self.bytes) else {
                throw CodingError.corrupt(.png, "the checksum of its pixels is wrong")
            }
        }
        self.offset = min(chunk.next, self.bytes.count)
        let content = chunk.content(of: self.bytes)
        let prefix = self.kind == .framePixels ? min(4, content.count) : 0
        return UnsafeRawBufferPointer(rebasing: content[prefix...])
    }

    /// Passes the remaining bytes in one piece to `body`.
    ///
    /// The piece is a copy only if there are several chunks. It is valid while `body` runs.
    mutating func withWhole<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result {
        var rest = self
        let first = try rest.next()
        var count = first?.count ?? 0
        var pieces = 1
        while let piece = try rest.next() {
            count += piece.count
            pieces += 1
        }
        defer { self.offset = rest.offset }
        guard pieces > 1 else { return try body(first ?? UnsafeRawBufferPointer(start: nil, count: 0)) }
        try MemoryRoom.require(count)
        let whole = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, count), alignment: 16)
        defer { whole.deallocate() }
        var copied = 0
        // The checksums were verified above.
        var pieceByPiece = PNGPixelData(self.bytes, at: self.offset, isLenient: true, work: self.work)
        while let piece = try pieceByPiece.next(), copied + piece.count <= count {
            UnsafeMutableRawBufferPointer(rebasing: whole[copied...]).copyMemory(from: piece)
            copied += piece.count
        }
        return try body(UnsafeRawBufferPointer(rebasing: whole[..<copied]))
    }

    /// Reads the chunks behind the pixels up to the end chunk.
    ///
    /// They hold no pixels, so their errors are ignored unless the chunk is critical.
    ///
    /// - Throws: `CodingError` if the end is missing, `CancellationError`.
    func checkEnd() throws {
        var offset = self.offset
        while let chunk = PNGChunk(at: offset, in: self.bytes) {
            try self.work.count(PNGHeader.unitsPerChunk)
            // Ignore its checksum, which guards no content.
            if chunk.kind == .end { return }
            guard chunk.length <= PNGChunk.maximumLength else { throw CodingError.corrupt(.png, "a chunk is too long") }
            guard chunk.isComplete(in: self.bytes) else { break }
            if chunk.kind.isCritical, chunk.kind != .pixels, chunk.kind != .palette {
                throw CodingError.corrupt(.png, "there is a critical chunk of an unknown kind")
            }
            offset = chunk.next
        }
        throw CodingError.truncated(.png)
    }
}
