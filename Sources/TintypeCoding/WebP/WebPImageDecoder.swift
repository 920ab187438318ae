// SPDX-License-Identifier: Apache-2.0

#if WebP
import CTintypeWebP
import CTintypeWebPSteps
import TintypeImage

/// The memory that the rows of a coded image are written to.
struct WebPTarget {
    /// The address of the first byte of the first row.
    let base: UnsafeMutableRawPointer
    let bytesPerRow: Int
    let width: Int
    let height: Int
    let hasAlpha: Bool

    /// Creates a target of all `bytes`, whose layout is `layout`; `nil` if there is no memory.
    init?(_ bytes: UnsafeMutableRawBufferPointer, layout: PixelLayout) {
        guard let base = bytes.baseAddress else { return nil }
        self.base = base
        self.bytesPerRow = layout.planes[0].bytesPerRow
        self.width = layout.width
        self.height = layout.height
        self.hasAlpha = layout.format.hasAlpha
    }

    /// Creates a target of the area that a frame covers on a canvas; the frame must lie within the canvas.
    init(_ canvas: FrameCanvas, frame: AnimationFrame) {
        self.base = canvas.row(frame.top) + frame.left * 4
        self.bytesPerRow = canvas.layout.planes[0].bytesPerRow
        self.width = frame.width
        self.height = frame.height
        self.hasAlpha = true
    }

    /// The bytes of a row that hold samples.
    var usedBytesPerRow: Int { self.width * (self.hasAlpha ? 4 : 3) }
    /// The number of bytes from the first to the last one that is written.
    var byteCount: Int { (self.height - 1) * self.bytesPerRow + self.usedBytesPerRow }
}

/// One libwebp decoder for one lossy image, which is freed with the value.
///
/// The caller passes it more and more of the image's bytes. It writes rows to memory of the caller, which must outlive
/// it. The bytes may move between two calls.
struct WebPImageDecoder: ~Copyable {
    /// The fewest pixels of a lossy image to interrupt between rows; for smaller ones a call takes some milliseconds.
    private static let leastPixelsInSteps = 1 << 22
    /// The rows of a lossy image that are decoded together.
    private static let rowsPerStep = 16

    /// On the heap, because the decoder keeps its address.
    private let config: UnsafeMutablePointer<WebPDecoderConfig>
    private let decoder: OpaquePointer
    /// Whether the decoder can be interrupted between rows, so that it may receive all bytes at once.
    let isInSteps: Bool
    private let width: Int
    private let height: Int
    private let targetHeight: Int
    private let alphaCheck: WebPAlphaCheck?

    /// Creates a decoder that writes to `target`, scaled to its size.
    init(_ image: WebPCodedImage, to target: WebPTarget) throws(CodingError) {
        var config = WebPDecoderConfig()
        guard WebPInitDecoderConfig(&config) != 0 else { throw .outOfMemory(.webp) }
        if (target.width, target.height) != (image.frame.width, image.frame.height) {
            config.options.use_scaling = 1
            config.options.scaled_width = CInt(target.width)
            config.options.scaled_height = CInt(target.height)
        }
        let isInSteps = Self.isInSteps(image)
        // This starts no thread: libwebp does the thread's work between the calls for each step.
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
        self.width = image.frame.width
        self.height = image.frame.height
        self.targetHeight = target.height
        self.alphaCheck = image.frame.hasAlpha && !image.isLossless ? WebPAlphaCheck(image) : nil
    }

    deinit {
        WebPIDelete(self.decoder)
        self.config.deallocate()
    }

    /// Returns whether the decoder of an image can be interrupted between rows.
    static func isInSteps(_ image: WebPCodedImage) -> Bool {
        !image.isLossless && image.frame.width >= Int(CWEBPSTEPS_MINIMUM_WIDTH)
            && image.frame.width * image.frame.height >= Self.leastPixelsInSteps && cwebpsteps_are_available() != 0
    }

    /// Decodes as far as `bytes` go: the bytes of the image from its first one, never fewer than before.
    ///
    /// - Throws: `CodingError`, `CancellationError`; after an error the decoder is unusable.
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

    /// The number of complete rows.
    var rowCount: Int {
        var rows: CInt = 0
        guard WebPIDecGetRGB(self.decoder, &rows, nil, nil, nil) != nil else { return 0 }
        return Int(rows)
    }
}

/// Refuses the alpha of a lossy image if libwebp would take more memory for its prefix codes than for its pixels.
///
/// Alpha is stored as a lossless image without a header. libwebp decodes it, and keeps up to 20 kB for each group of
/// codes; a chunk of 300 kB may have 65,536 of them. Sources: RFC 9649, sections 2.7.1.2 and 3.7.2.2; libwebp 1.2.4,
/// `vp8l_dec.c`.
final class WebPAlphaCheck {
    /// The memory of libwebp for a group without its cache, and the most for an entry of the cache.
    private static let (bytesPerGroup, bytesPerCacheEntry) = (12 << 10, 4)
    /// The memory that prefix codes may take in addition to a quarter of a byte for each pixel.
    private static let freeByteCount = 4 << 20
    /// The fewest bits that a group takes: five codes of one symbol.
    private static let leastBitsPerGroup = 20

    private let width: Int
    private let height: Int
    private var isDone = false

    /// Creates a check of the alpha of a lossy image.
    init(_ image: WebPCodedImage) {
        self.width = image.frame.width
        self.height = image.frame.height
    }

    /// Checks the bytes of the image from its first one, once the alpha chunk is complete.
    ///
    /// The decoder of libwebp waits for that too.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func check(_ bytes: UnsafeRawBufferPointer, work: DecodeWork) throws {
        guard !self.isDone, let chunk = WebPChunk(bytes, at: 0), chunk.name == WebPChunk.Name.alpha else { return }
        guard bytes.count >= chunk.body.upperBound else { return }
        self.isDone = true
        let body = UnsafeRawBufferPointer(rebasing: bytes[chunk.body])
        // The lowest two bits give the compression: none, or as a lossless image.
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
            // The chunk is complete, so a stream that ends early is damaged.
            if case .needsBytes = error { throw CodingError(VP8LError.damaged) }
            throw CodingError(error)
        }
    }

    private static func byteCount(ofGroups count: Int, cacheBits: Int) -> Int {
        count * (self.bytesPerGroup + (cacheBits > 0 ? self.bytesPerCacheEntry << cacheBits : 0))
    }
}
#endif
