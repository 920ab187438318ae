import FoundationEssentials
import TintypeImage

/// Decodes a PNG while its bytes arrive: by rows, or by passes where it is interlaced.
///
/// The chunks before the pixels are kept until the pixels begin; of these nothing is kept. An
/// animation keeps all bytes: its default image is shown while they arrive, and at the end
/// the frame that was asked for.
final class PNGIncrementalDecoder: IncrementalDecoder {
    /// What the pixels are decoded with, once they begin.
    private struct Pixels {
        let lines: PNGScanlines
        let canvas: PNGCanvas
    }

    private(set) var header: ImageHeader?
    private let options: DecodeOptions
    private let work: DecodeWork
    private var receivedByteCount = 0
    /// The bytes that are kept.
    private var kept = Data()
    private var keepsAll = false
    /// Whether the header has arrived and declares no more than is allowed.
    private var isWithinLimits = false
    /// Where the next chunk before the pixels begins.
    private var offset = PNGHeader.firstChunk
    private var pixels: Pixels?
    private var chunks = PNGChunkStream()
    /// A block of metadata that stands behind the pixels.
    private var metadata = Data()
    private var havePixelsEnded = false
    private var hasEnded = false
    /// What was wrong, where that is allowed or does not matter.
    private var failure: CodingError?
    private var previewedLineCount = 0

    init(options: DecodeOptions) {
        self.options = options
        self.work = DecodeWork(options.limits, format: .png)
    }

    var workDone: Int { self.work.spent.saturatingAdded(to: self.pixels?.canvas.previewWork.spent ?? 0) }

    func append(_ bytes: Data) throws {
        guard !bytes.isEmpty else { return }
        try Task.checkCancellation()
        self.receivedByteCount += bytes.count
        try self.options.limits.check(encodedByteCount: self.receivedByteCount)
        if self.keepsAll, self.pixels != nil { self.kept.append(bytes) }
        guard self.failure == nil else { return }
        do {
            if self.pixels != nil {
                try bytes.withUnsafeBytes { try self.consume($0) }
            } else {
                self.kept.append(bytes)
                try self.beginPixels()
            }
        } catch let error as CodingError {
            // The default image of an animation need not be its frame.
            let isShown = self.options.allowsTruncated && (self.pixels?.lines.lineCount ?? 0) > 0
            guard error.isDamage, self.pixels != nil, self.keepsAll || isShown else {
                throw error
            }
            self.failure = error
        }
    }

    func preview() throws -> Image? {
        guard let pixels, let header, pixels.lines.lineCount > self.previewedLineCount else { return nil }
        self.previewedLineCount = pixels.lines.lineCount
        return Image(pixels: try pixels.canvas.preview(), orientation: header.orientation, sourceFormat: .png)
    }

    func finish() throws -> DecodedImage {
        guard let pixels else {
            // The decoder of whole files says best what is wrong with one without pixels.
            _ = try EncodedPNG(self.kept, limits: self.options.limits).decode(options: self.options)
            throw CodingError.truncated(.png)
        }
        if self.keepsAll { return try self.finishAnimation() }
        if !self.options.allowsTruncated {
            if let failure { throw failure }
            guard pixels.lines.isFinished, self.hasEnded else { throw CodingError.truncated(.png) }
        } else if pixels.lines.lineCount == 0 {
            throw self.failure ?? CodingError.truncated(.png)
        }
        guard self.options.frame == 0 else {
            throw CodingError(
                code: .invalidOptions,
                message: "There is no frame \(self.options.frame): the picture has 1, from 0 on.",
                format: .png
            )
        }
        let orientation = self.header?.orientation ?? .up
        let copy = try pixels.canvas.copy(work: self.work)
        return DecodedImage(Image(pixels: copy, orientation: orientation, sourceFormat: .png))
    }

    /// The frame that was asked for, composited; or what is no animation after all, as a still.
    private func finishAnimation() throws -> DecodedImage {
        let encoded = try EncodedPNG(self.kept, limits: self.options.limits)
        self.header = encoded.header
        return try encoded.decode(options: self.options)
    }

    // MARK: Before the pixels

    /// Looks whether the pixels begin in what has arrived.
    private func beginPixels() throws {
        let kept = self.kept
        try kept.withUnsafeBytes { bytes in
            if !self.isWithinLimits, bytes.count >= PNGHeader.firstChunk {
                try self.options.limits.check(ImageHeader(try PNGHeader(bytes, .beforePixels, work: self.work)))
                self.isWithinLimits = true
            }
            while self.isWithinLimits, let chunk = PNGChunk(at: self.offset, in: bytes) {
                try self.work.count(PNGHeader.unitsPerChunk)
                if chunk.kind == .pixels { return try self.beginPixels(in: bytes) }
                guard chunk.kind != .end else { throw CodingError.corrupt(.png, "it has no pixels") }
                guard chunk.length <= PNGChunk.maximumLength else {
                    throw CodingError.corrupt(.png, "a chunk is too long")
                }
                guard chunk.isComplete(in: bytes) else { return }
                if chunk.kind == .animationControl { self.keepsAll = true }
                self.offset = chunk.next
            }
        }
    }

    private func beginPixels(in bytes: UnsafeRawBufferPointer) throws {
        let png = try PNGHeader(bytes, .beforePixels, work: self.work)
        self.header = ImageHeader(png)
        self.pixels = Pixels(
            lines: try PNGScanlines(png.layout, work: self.work),
            canvas: try PNGCanvas(png, output: self.keepsAll ? .rgba8 : png.pixelFormat)
        )
        try self.consume(UnsafeRawBufferPointer(rebasing: bytes[self.offset...]))
    }

    // MARK: Pixels and what follows them

    private func consume(_ bytes: UnsafeRawBufferPointer) throws {
        defer { if !self.keepsAll { self.kept = Data() } }
        var input = bytes
        while !self.hasEnded, let event = try self.chunks.next(&input) {
            try self.work.count(1)
            switch event {
            case .begin(let kind): try self.begin(kind)
            case .content(.pixels, let content) where !self.havePixelsEnded: try self.decode(content)
            case .content(.exif, let content), .content(.colorProfile, let content):
                self.metadata.append(contentsOf: content)
            case .content: break
            case .end(let kind, let isSound): try self.end(kind, isSound: isSound)
            }
        }
    }

    private func begin(_ kind: PNGChunk.Kind) throws(CodingError) {
        guard kind != .pixels else { return }
        if !self.havePixelsEnded, self.pixels?.lines.isFinished == false { throw .truncated(.png) }
        self.havePixelsEnded = true
        switch kind {
        // Its checksum guards nothing.
        case .end: self.hasEnded = true
        case .exif, .colorProfile: self.metadata = Data()
        case .palette: break
        default:
            guard !kind.isCritical || self.options.allowsTruncated else {
                throw .corrupt(.png, "there is a critical chunk of an unknown kind")
            }
        }
    }

    private func end(_ kind: PNGChunk.Kind, isSound: Bool) throws(CodingError) {
        switch kind {
        case .pixels where !isSound && !self.havePixelsEnded && !self.options.allowsTruncated:
            throw .corrupt(.png, "the checksum of its pixels is wrong")
        case .exif where isSound:
            if self.header?.orientation == .up, let orientation = EXIF.orientation(in: self.metadata) {
                self.header?.orientation = orientation
            }
        case .colorProfile where isSound && self.header?.colorProfile == nil:
            self.header?.colorProfile = PNGColorProfile.inflated(self.metadata)
        default: break
        }
    }

    private func decode(_ content: UnsafeRawBufferPointer) throws {
        guard let pixels else { return }
        var input = content
        while let line = try pixels.lines.next(&input) { pixels.canvas.write(line) }
    }
}
