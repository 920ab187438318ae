import FoundationEssentials
import TintypeImage

/// Decodes a JPEG while its bytes arrive: row by row, or scan by scan where it has several.
///
/// Only what the library has not used yet is kept of the bytes: the head until the first scan is
/// reached, then less than a block's worth. Arithmetic coding can't be interrupted; such a picture
/// is kept and decoded at the end.
final class JPEGIncrementalDecoder: IncrementalDecoder {
    /// Bytes that are taken in at once.
    private static let bytesAtOnce = 128 << 10
    /// A segment and some blocks: where the library leaves more of what it was lent, it stands before fill bytes.
    private static let maximumPendingCount = 80 << 10

    private let options: DecodeOptions
    private let work: DecodeWork
    private var parser = JPEGHeaderParser()
    private var pending = Data()
    private var picture: JPEGPartialPicture?
    private var failure: CodingError?
    private(set) var header: ImageHeader?

    init(options: DecodeOptions) {
        self.options = options
        self.work = DecodeWork(options.limits, format: .jpeg)
    }

    var workDone: Int { self.work.spent.saturatingAdded(to: self.picture?.previewWork.spent ?? 0) }

    func append(_ bytes: Data) throws {
        if let failure = self.failure { throw failure }
        do {
            try self.take(bytes)
        } catch let error as CodingError {
            self.failure = error
            throw error
        }
    }

    func preview() throws -> Image? {
        guard self.failure == nil else { return nil }
        return try self.picture?.preview().map { self.image($0) }
    }

    func finish() throws -> DecodedImage {
        let header = self.parser.header
        guard self.header != nil else { throw self.failure ?? self.parser.missingEnd(of: self.pending) }
        guard let picture = self.picture else {
            if let failure = self.failure { throw failure }
            // Arithmetic coding.
            return try EncodedJPEG(self.pending, header).decode(options: self.options)
        }
        if let failure = self.failure {
            guard self.options.allowsTruncated, failure.isDamage, picture.hasRows else { throw failure }
        } else {
            try self.feed(Data(), isComplete: true, to: picture)
        }
        return header.decodedImage(try picture.pixels(), divisor: picture.divisor)
    }

    private func take(_ bytes: Data) throws {
        if let picture = self.picture {
            try self.feedStepwise(bytes, to: picture)
            return
        }
        self.pending.append(bytes)
        try self.options.limits.check(self.pending)
        guard self.header == nil, try self.parser.parse(self.pending, work: self.work) else { return }
        let header = self.parser.header
        try self.options.limits.check(header.imageHeader)
        self.header = header.imageHeader
        guard !header.isArithmetic else { return }
        let picture = try JPEGPartialPicture(header, options: self.options, work: self.work)
        self.picture = picture
        let pending = self.pending
        self.pending = Data()
        try self.feedStepwise(pending, to: picture)
    }

    /// Lends so few bytes at once that a cancelled decode ends early, however many have come.
    private func feedStepwise(_ bytes: Data, to picture: JPEGPartialPicture) throws {
        for start in stride(from: 0, to: bytes.count, by: Self.bytesAtOnce) {
            let step = bytes.slice(from: start, to: start + Self.bytesAtOnce)
            try self.work.count(bytes: step.count)
            try self.feed(step, isComplete: false, to: picture)
        }
    }

    private func feed(_ bytes: Data, isComplete: Bool, to picture: JPEGPartialPicture) throws {
        let input = self.pending.isEmpty ? bytes : self.pending + bytes
        let used = try input.withUnsafeBytes { try picture.read($0, isComplete: isComplete) }
        // A copy, so that the rest does not keep all bytes alive.
        self.pending = used == input.count ? Data() : Data(input.dropFirst(used))
        if self.pending.count > Self.maximumPendingCount { self.dropFillBytes() }
    }

    /// Leaves one of each row of fill bytes, which have no meaning but one: the library would go over all of them
    /// again each time more bytes come.
    ///
    /// Source: ITU-T T.81, B.1.1.2.
    private func dropFillBytes() {
        var last: UInt8 = 0
        self.pending.removeAll { byte in
            defer { last = byte }
            return byte == 0xFF && last == 0xFF
        }
    }

    private func image(_ pixels: PixelBuffer) -> Image {
        Image(pixels: pixels, orientation: self.header?.orientation ?? .up, sourceFormat: .jpeg)
    }
}
