import CWebP
import CWebPSteps
import TintypeImage

/// Memory that the rows of a coded image are written to.
struct WebPTarget {
    /// The first byte of the first row.
    let base: UnsafeMutableRawPointer
    let bytesPerRow: Int
    let width: Int
    let height: Int
    let hasAlpha: Bool

    /// The whole of `bytes`, which are laid out by `layout`; `nil` when there are none.
    init?(_ bytes: UnsafeMutableRawBufferPointer, layout: PixelLayout) {
        guard let base = bytes.baseAddress else { return nil }
        self.base = base
        self.bytesPerRow = layout.planes[0].bytesPerRow
        self.width = layout.width
        self.height = layout.height
        self.hasAlpha = layout.format.hasAlpha
    }

    /// The area of a canvas that a frame covers; the frame lies on it.
    init(_ canvas: FrameCanvas, frame: AnimationFrame) {
        self.base = canvas.row(frame.top) + frame.left * 4
        self.bytesPerRow = canvas.layout.planes[0].bytesPerRow
        self.width = frame.width
        self.height = frame.height
        self.hasAlpha = true
    }

    /// The bytes of a row that hold samples.
    var usedBytesPerRow: Int { self.width * (self.hasAlpha ? 4 : 3) }
    /// The bytes from the first to the last one that is written.
    var byteCount: Int { (self.height - 1) * self.bytesPerRow + self.usedBytesPerRow }
}

/// One libwebp decoder for one lossy image; freed with the value.
///
/// Shown more and more of the image's bytes, it writes rows to memory that is not its own and must outlive it. The
/// bytes may move between two calls.
struct WebPPictureDecoder: ~Copyable {
    /// From how many pixels on a lossy image is asked between its rows; below, one call takes some milliseconds.
    private static let leastPixelsInSteps = 1 << 22
    /// The rows of a lossy image that are decoded together.
    private static let rowsPerStep = 16

    /// On the heap, because the decoder keeps its address.
    private let config: UnsafeMutablePointer<WebPDecoderConfig>
    private let decoder: OpaquePointer
    /// Whether the decoder is asked between rows, so that all bytes may be given at once.
    let isInSteps: Bool
    private let width: Int
    private let height: Int
    private let targetHeight: Int
    private let alphaCheck: WebPAlphaCheck?

    /// Makes a decoder that writes to `target`, scaled to its size.
    init(_ picture: WebPCodedPicture, to target: WebPTarget) throws(CodingError) {
        var config = WebPDecoderConfig()
        guard WebPInitDecoderConfig(&config) != 0 else { throw .outOfMemory(.webp) }
        if (target.width, target.height) != (picture.frame.width, picture.frame.height) {
            config.options.use_scaling = 1
            config.options.scaled_width = CInt(target.width)
            config.options.scaled_height = CInt(target.height)
        }
        let isInSteps = Self.isInSteps(picture)
        // No thread is made: what they would do is done between the questions.
        config.options.use_threads = isInSteps ? 1 : 0
        config.output.colorspace = target.hasAlpha ? MODE_RGBA : MODE_RGB
        config.output.is_external_memory = 1
        config.output.u.RGBA.rgba = target.base.assumingMemoryBound(to: UInt8.self)
        config.output.u.RGBA.stride = CInt(target.bytesPerRow)
        config.output.u.RGBA.size = target.byteCount
        let kept = UnsafeMutablePointer<WebPDecoderConfig>.allocate(capacity: 1)
        kept.initialize(to: config)
        guard let decoder = WebPIDecode(nil, 0, kept) else {
            kept.deallocate()
            throw .outOfMemory(.webp)
        }
        self.config = kept
        self.decoder = decoder
        self.isInSteps = isInSteps
        self.width = picture.frame.width
        self.height = picture.frame.height
        self.targetHeight = target.height
        self.alphaCheck = picture.frame.hasAlpha && !picture.isLossless ? WebPAlphaCheck(picture) : nil
    }

    deinit {
        WebPIDelete(self.decoder)
        self.config.deallocate()
    }

    /// Whether an image's decoder is asked between rows.
    static func isInSteps(_ picture: WebPCodedPicture) -> Bool {
        !picture.isLossless && picture.frame.width >= Int(CWEBPSTEPS_MINIMUM_WIDTH)
            && picture.frame.width * picture.frame.height >= Self.leastPixelsInSteps && cwebpsteps_are_available() != 0
    }

    /// Decodes as far as `bytes` go: those of the image from its first one on, never fewer than before.
    ///
    /// - Throws: `CodingError`, `CancellationError`; then it decodes no more.
    borrowing func update(_ bytes: UnsafeRawBufferPointer, work: DecodeWork) throws -> VP8StatusCode {
        try self.alphaCheck?.check(bytes, work: work)
        let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        guard self.isInSteps else {
            let before = self.rowCount
            let status = WebPIUpdate(self.decoder, start, bytes.count)
            try work.count((self.rowCount - before) * self.height / self.targetHeight * self.width)
            return status
        }
        let steps = ReportedWork(work, unitsPerReport: self.width * Self.rowsPerStep)
        let status = cwebpsteps_update(
            self.decoder,
            start,
            bytes.count,
            { context in
                guard let context else { return 0 }
                return Unmanaged<ReportedWork>.fromOpaque(context).takeUnretainedValue().count() ? 1 : 0
            },
            Unmanaged.passUnretained(steps).toOpaque()
        )
        try withExtendedLifetime(steps) { if let error = steps.error { throw error } }
        return status
    }

    /// The rows that are complete.
    var rowCount: Int {
        var rows: CInt = 0
        guard WebPIDecGetRGB(self.decoder, &rows, nil, nil, nil) != nil else { return 0 }
        return Int(rows)
    }
}

/// Refuses the alpha of a lossy image where libwebp would take more memory for its prefix codes than for its pixels.
///
/// Alpha is stored as a lossless image without a header, and decoded by libwebp, which keeps up to 20 kB for each
/// group of codes; a chunk of 300 kB may have 65,536 of them. Sources: RFC 9649, sections 2.7.1.2 and 3.7.2.2; libwebp
/// 1.2.4, `vp8l_dec.c`.
final class WebPAlphaCheck {
    /// What libwebp takes for a group, without its cache and at most for that.
    private static let (bytesPerGroup, bytesPerCacheEntry) = (12 << 10, 4)
    /// What prefix codes may take besides a quarter of a byte for each pixel.
    private static let freeByteCount = 4 << 20
    /// The fewest bits that a group takes: five codes of one symbol.
    private static let leastBitsPerGroup = 20

    private let width: Int
    private let height: Int
    private var isDone = false

    /// Prepares to look at the alpha of a lossy image.
    init(_ picture: WebPCodedPicture) {
        self.width = picture.frame.width
        self.height = picture.frame.height
    }

    /// Looks at the bytes of the image from its first one on, once the chunk of its alpha is there: libwebp waits for
    /// that too.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func check(_ bytes: UnsafeRawBufferPointer, work: DecodeWork) throws {
        guard !self.isDone, let chunk = WebPChunk(bytes, at: 0), chunk.name == WebPChunk.Name.alpha else { return }
        guard bytes.count >= chunk.body.upperBound else { return }
        self.isDone = true
        let body = UnsafeRawBufferPointer(rebasing: bytes[chunk.body])
        // The lowest two bits say how it is compressed: not at all, or as a lossless image.
        guard let first = body.first, first & 3 == 1 else { return }
        let limit = Self.freeByteCount + self.width * self.height / 4
        let most = min(body.count * 8 / Self.leastBitsPerGroup, 1 << 16)
        guard Self.byteCount(ofGroups: most, cacheBits: VP8LDecoder.maximumCacheBits) > limit else { return }
        do {
            let groups = try VP8LDecoder(width: self.width, height: self.height)
                .groups(ofHeaderless: UnsafeRawBufferPointer(rebasing: body.dropFirst()), work: work)
            let count = Self.byteCount(ofGroups: groups.count, cacheBits: groups.cacheBits)
            guard count <= limit else { throw VP8LError.tooManyCodes }
        } catch let error as VP8LError {
            // The chunk is there whole: what is missing of the stream is damage.
            if case .needsBytes = error { throw CodingError(VP8LError.damaged) }
            throw CodingError(error)
        }
    }

    private static func byteCount(ofGroups count: Int, cacheBits: Int) -> Int {
        count * (self.bytesPerGroup + (cacheBits > 0 ? self.bytesPerCacheEntry << cacheBits : 0))
    }
}
