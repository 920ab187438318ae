// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// Decodes the pixels of one frame of a GIF, and resumes when more bytes have arrived.
struct GIFFrameDecoder: ~Copyable {
    /// How far the frame is decoded.
    enum Progress {
        /// More bytes are needed.
        case needsBytes
        /// All pixels are decoded.
        case isComplete
        /// The frame's blocks ended before its last pixel.
        case isCut
        /// The frame's codes are invalid.
        case isDamaged
    }

    /// The number of collected pixels at which they are written and counted.
    private static let portion = 1 << 19

    private var reader: GIFCodeReader
    private var writer: GIFRowWriter
    private let isSupported: Bool
    private var offset: Int
    private(set) var progress = Progress.needsBytes

    /// Creates a decoder that passes the pixels of `frame` to `writer`.
    init(_ frame: GIFFrame, writer: consuming GIFRowWriter) {
        self.offset = frame.dataOffset
        self.isSupported = GIFCodeReader.supports(minimumCodeSize: Int(frame.minimumCodeSize))
        self.reader = GIFCodeReader(minimumCodeSize: Int(frame.minimumCodeSize), pixelCount: writer.remaining)
        self.writer = writer
    }

    /// The number of pixels that are not decoded yet.
    var missingPixelCount: Int { self.writer.remaining }

    /// Decodes the new blocks of `data`, which is the whole file so far.
    ///
    /// - Parameters:
    ///   - data: The file from its first byte.
    ///   - isAll: Whether no more bytes will come.
    ///   - work: The counter of bytes and pixels; one block of codes may yield up to 700,000 pixels.
    /// - Throws: `CodingError.Code.tooMuchWork`, `CancellationError`.
    mutating func advance(through data: Data, isAll: Bool, work: DecodeWork) throws {
        guard self.progress == .needsBytes else { return }
        if self.writer.remaining == 0 { return self.progress = .isComplete }
        guard self.isSupported else { return self.progress = .isDamaged }
        let result = Result<Void, any Error> {
            try data.withUnsafeBytes { try self.readBlocks($0, isAll: isAll, work: work) }
        }
        let missing = self.writer.remaining
        self.reader.flush(to: &self.writer)
        if self.writer.remaining == 0 { self.progress = .isComplete }
        try result.get()
        try work.count(missing - self.writer.remaining)
    }

    private mutating func readBlocks(_ bytes: UnsafeRawBufferPointer, isAll: Bool, work: DecodeWork) throws {
        while self.progress == .needsBytes {
            guard self.offset < bytes.count else {
                if isAll { self.progress = .isCut }
                return
            }
            let start = self.offset + 1
            let end = start + Int(bytes[self.offset])
            guard end <= bytes.count || isAll else { return }
            guard end > start else { return self.progress = .isCut }
            let block = UnsafeRawBufferPointer(rebasing: bytes[min(start, bytes.count)..<min(end, bytes.count)])
            let missing = self.writer.remaining
            self.progress =
                switch self.reader.read(block, to: &self.writer) {
                case .needsBytes: .needsBytes
                case .isComplete: .isComplete
                case .hasEnded: .isCut
                case .isDamaged: .isDamaged
                }
            self.offset = end
            if self.reader.pendingCount >= Self.portion { self.reader.flush(to: &self.writer) }
            try work.count(missing - self.writer.remaining)
            try work.count(bytes: block.count)
        }
    }

    /// Throws unless the frame is complete; call it after the last byte.
    func check() throws(CodingError) {
        switch self.progress {
        case .isComplete: return
        case .needsBytes, .isCut: throw .truncated(.gif)
        case .isDamaged: throw .corrupt(.gif, "the codes of its pixels make no sense")
        }
    }
}
