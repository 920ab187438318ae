import FoundationEssentials
import TintypeImage

/// Decodes the pixels of one image of a GIF; goes on where it stopped when more bytes are there.
struct GIFFrameDecoder: ~Copyable {
    /// How far the image is decoded.
    enum Progress {
        /// More bytes are needed.
        case needsBytes
        /// All pixels are there.
        case isComplete
        /// The image's blocks have ended before its last pixel.
        case isCut
        /// Its codes make no sense.
        case isDamaged
    }

    /// From how many pixels on those that were collected are written, so that they are counted.
    private static let portion = 1 << 19

    private var reader: GIFCodeReader
    private var writer: GIFRowWriter
    private let isSupported: Bool
    private var offset: Int
    private(set) var progress = Progress.needsBytes

    /// Prepares to decode the image of `frame` to where `writer` puts it.
    init(_ frame: GIFFrame, writer: consuming GIFRowWriter) {
        self.offset = frame.dataOffset
        self.isSupported = GIFCodeReader.supports(minimumCodeSize: Int(frame.minimumCodeSize))
        self.reader = GIFCodeReader(minimumCodeSize: Int(frame.minimumCodeSize), pixelCount: writer.remaining)
        self.writer = writer
    }

    /// The pixels that are still to come.
    var missingPixelCount: Int { self.writer.remaining }

    /// Decodes the blocks of `data`, the whole file so far, that were not there before.
    ///
    /// - Parameters:
    ///   - data: The file from its first byte.
    ///   - isAll: Whether no more bytes will come.
    ///   - work: Counts bytes and pixels: a block of codes gives up to 700,000 of them.
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

    /// Throws for what is missing of an image of which all bytes were given.
    func check() throws(CodingError) {
        switch self.progress {
        case .isComplete: return
        case .needsBytes, .isCut: throw .truncated(.gif)
        case .isDamaged: throw .corrupt(.gif, "the codes of its pixels make no sense")
        }
    }
}
