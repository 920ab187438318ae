// SPDX-License-Identifier: Apache-2.0

#if WebP
import CTintypeWebP
import FoundationEssentials
import TintypeImage

/// Encodes still images with libwebp.
struct WebPCompressor {
    let options: EncodeOptions

    /// Encodes upright pixels.
    func compress(_ pixels: PixelBuffer) throws -> Data {
        let image = try WebPSourceImage(pixels, isLossless: self.options.compression.isLossless)
        return try self.options.smallestWebP { try self.compress(image, quality: $0) }
    }

    private func compress(_ image: borrowing WebPSourceImage, quality: Int) throws -> Data {
        try Task.checkCancellation()
        var config = try self.options.webpConfig(quality: quality, hasAlpha: image.hasAlpha)
        return try WebPMetadata.add(self.options.metadata, to: try image.encode(&config))
    }
}

extension EncodeOptions {
    /// Returns the result of `compress` at the requested quality or, if that is too large, at the highest quality that
    /// fits.
    ///
    /// If none fits, returns the smallest result, unless the limit is required.
    func smallestWebP(_ compress: (_ quality: Int) throws -> Data) throws -> Data {
        let quality = min(max(self.quality, 1), 100)
        let whole = try compress(quality)
        guard let limit = self.maximumByteCount, whole.count > limit else { return whole }
        guard !self.compression.isLossless else {
            guard self.requiresMaximumByteCount else { return whole }
            throw CodingError.webpEncoding("without loss it takes \(whole.count) bytes of \(limit); choose lossy")
        }
        var smallest = self.requiresMaximumByteCount ? nil : whole
        let largest = try Self.largest(below: quality) { quality in
            let data = try compress(quality)
            if let known = smallest, data.count < known.count { smallest = data }
            return data.count <= limit ? data : nil
        }
        if let data = largest ?? smallest { return data }
        throw CodingError.webpEncoding("it does not fit \(limit) bytes at the lowest quality; make it smaller")
    }

    /// Returns libwebp's configuration for these options.
    func webpConfig(quality: Int, hasAlpha: Bool) throws(CodingError) -> WebPConfig {
        var config = WebPConfig()
        var isValid = WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, Float(quality)) != 0
        switch self.compression {
        case .lossy:
            // With 6, libwebp may compress an alpha plane for 4 seconds a megapixel without a check for cancellation.
            config.method = CInt(min(max(self.webpEffort, 0), hasAlpha ? 5 : 6))
        case .lossless:
            // This is the default effort of cwebp. Keep hidden colours.
            isValid = isValid && WebPConfigLosslessPreset(&config, 6) != 0
            config.exact = 1
        case .nearLossless(let level):
            isValid = isValid && WebPConfigLosslessPreset(&config, 6) != 0
            config.near_lossless = CInt(min(max(level, 0), 100))
            // libwebp changes nothing if hidden colours are kept.
            config.exact = level >= 100 ? 1 : 0
        }
        config.low_memory = self.savesMemory ? 1 : 0
        guard isValid, WebPValidateConfig(&config) != 0 else { throw .webpEncoding("libwebp refused the options") }
        return config
    }
}

extension EncodeOptions.Compression {
    /// Whether VP8L is written.
    var isLossless: Bool { self != .lossy }
}

extension CodingError {
    /// Returns the error for an image that could not be written.
    static func webpEncoding(_ reason: String) -> CodingError {
        .notEncoded(.webp, "The image cannot be written as WebP: \(reason).")
    }
}

/// The memory that libwebp takes to encode the worst image of a size, measured with noise of two values.
struct WebPMemory {
    private let pixelCount: Int
    private let tileCount: Int
    private let hasAlpha: Bool
    private let isLossless: Bool
    /// Whether the statistics of a lossless image, such as the alpha plane of a lossy one, are for small tiles.
    private let hasSmallTiles: Bool
    private let quality: Int
    private let triesQualities: Bool
    private let savesMemory: Bool

    init(_ layout: PixelLayout, _ options: EncodeOptions) {
        // Lossy images are stored in blocks of 16 by 16 pixels. A lossless one has statistics for each 8 by 8, at most
        // 2,600.
        self.pixelCount = ((layout.width + 15) / 16).saturatingMultiplied(by: (layout.height + 15) / 16)
            .saturatingMultiplied(by: 256)
        self.tileCount = min(2_600, ((layout.width + 7) / 8).saturatingMultiplied(by: (layout.height + 7) / 8))
        self.hasAlpha = layout.format.hasAlpha
        self.isLossless = options.compression.isLossless
        self.hasSmallTiles = self.isLossless || options.webpEffort > 4
        self.quality = min(max(options.quality, 1), 100)
        self.triesQualities = options.maximumByteCount != nil
        self.savesMemory = options.savesMemory
    }

    /// The most half bytes that a pixel takes in the file.
    private var fileHalves: Int { self.isLossless ? 9 : self.hasAlpha ? 5 : 3 }

    /// Returns the memory of an encode in bytes; `frameCount` is `nil` for a still image.
    func byteCount(frameCount: Int?) -> Int {
        let file = (self.pixelCount / 2).saturatingMultiplied(by: self.fileHalves)
        let still = self.pixelCount.saturatingMultiplied(by: self.codecBytesPerPixel)
            .saturatingAdded(to: self.codecByteCount(isAnimated: frameCount != nil))
            // The best file so far stays while another quality is tried.
            .saturatingAdded(to: self.triesQualities ? file.saturatingMultiplied(by: 2) : 0)
        guard let frameCount else { return still }
        // Three canvases and the frame, two encodings of it, and all encoded frames, which are assembled at the end.
        return still.saturatingAdded(to: self.pixelCount.saturatingMultiplied(by: 20))
            .saturatingAdded(to: file.saturatingMultiplied(by: frameCount.saturatingMultiplied(by: 3)))
    }

    /// The bytes for each pixel: libwebp's copy of the image, its analysis, and the file, whose buffer grows by
    /// doubling.
    private var codecBytesPerPixel: Int {
        // libwebp holds the bits of all blocks of a lossy image. Alpha is stored as a lossless image.
        self.isLossless ? 48 : max(self.savesMemory ? 7 : 12 + self.quality / 4, self.hasAlpha ? 40 : 0)
    }

    private func codecByteCount(isAnimated: Bool) -> Int {
        // In an animation, blocks that stay the same become transparent.
        guard self.isLossless || self.hasAlpha || isAnimated else { return 256 << 10 }
        return (2 << 20) + self.tileCount * (self.hasSmallTiles ? 10 : 1) << 10
    }
}

/// One image in the form of libwebp's encoder, which is freed with the value.
struct WebPSourceImage: ~Copyable {
    /// On the heap, because the encoder writes to it.
    private let image: UnsafeMutablePointer<WebPPicture>
    /// The pixels to convert between two checks for cancellation: about a millisecond.
    private static let pixelsAtOnce = 1 << 18

    /// Converts upright pixels.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    init(_ pixels: PixelBuffer, isLossless: Bool) throws {
        guard max(pixels.width, pixels.height) <= WEBP_MAX_DIMENSION else {
            throw CodingError.webpEncoding("a side may have at most \(WEBP_MAX_DIMENSION) pixels")
        }
        var image = try Self.image(width: pixels.width, height: pixels.height, isLossless: isLossless)
        image.colorspace = pixels.format.hasAlpha ? WEBP_YUV420A : WEBP_YUV420
        image.progress_hook = { _, _ in Task.isCancelled ? 0 : 1 }
        do {
            guard WebPPictureAlloc(&image) != 0 else { throw CodingError.outOfMemory(.webp) }
            // An even number, because two rows share their colours.
            let rowsAtOnce = max(2, Self.pixelsAtOnce / pixels.width / 2 * 2)
            for top in stride(from: 0, to: pixels.height, by: rowsAtOnce) {
                try Task.checkCancellation()
                try Self.fill(&image, rows: top..<min(top + rowsAtOnce, pixels.height), of: pixels)
            }
        } catch {
            WebPPictureFree(&image)
            throw error
        }
        self.image = .allocate(capacity: 1)
        self.image.initialize(to: image)
    }

    deinit {
        WebPPictureFree(self.image)
        self.image.deallocate()
    }

    /// Returns an image without pixels.
    private static func image(width: Int, height: Int, isLossless: Bool) throws(CodingError) -> WebPPicture {
        var image = WebPPicture()
        guard WebPPictureInit(&image) != 0 else { throw .webpEncoding("libwebp has another version") }
        image.width = CInt(width)
        image.height = CInt(height)
        image.use_argb = isLossless ? 1 : 0
        return image
    }

    /// Converts some rows of `pixels` through an image of their own, because libwebp converts a whole image in one
    /// call.
    private static func fill(_ image: inout WebPPicture, rows: Range<Int>, of pixels: PixelBuffer) throws {
        var strip = try Self.image(width: pixels.width, height: rows.count, isLossless: image.use_argb != 0)
        defer { WebPPictureFree(&strip) }
        guard Self.convert(rows, of: pixels, to: &strip) else { throw CodingError.outOfMemory(.webp) }
        let colorRows = (rows.count + 1) / 2
        Self.copy(
            strip.argb,
            strip.argb_stride,
            to: image.argb,
            image.argb_stride,
            from: rows.lowerBound,
            rows.count
        )
        Self.copy(strip.y, strip.y_stride, to: image.y, image.y_stride, from: rows.lowerBound, rows.count)
        Self.copy(strip.u, strip.uv_stride, to: image.u, image.uv_stride, from: rows.lowerBound / 2, colorRows)
        Self.copy(strip.v, strip.uv_stride, to: image.v, image.uv_stride, from: rows.lowerBound / 2, colorRows)
        if strip.a != nil {
            Self.copy(strip.a, strip.a_stride, to: image.a, image.a_stride, from: rows.lowerBound, rows.count)
        } else if let alpha = image.a {
            // libwebp makes no alpha plane for opaque rows.
            let stride = Int(image.a_stride)
            (alpha + rows.lowerBound * stride).update(repeating: 255, count: rows.count * stride)
        }
    }

    /// Copies the rows of a plane to the rows from `first` on; does nothing if either image lacks the plane.
    private static func copy<Sample>(
        _ source: UnsafeMutablePointer<Sample>?,
        _ sourceStride: CInt,
        to target: UnsafeMutablePointer<Sample>?,
        _ targetStride: CInt,
        from first: Int,
        _ count: Int
    ) {
        guard let source, let target else { return }
        for row in 0..<count {
            (target + (first + row) * Int(targetStride))
                .update(from: source + row * Int(sourceStride), count: Int(min(sourceStride, targetStride)))
        }
    }

    private static func convert(_ rows: Range<Int>, of pixels: PixelBuffer, to strip: inout WebPPicture) -> Bool {
        let plane = pixels.layout.planes[0]
        return pixels.withUnsafeBytes { source in
            guard let first = source.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return false }
            let start = first + rows.lowerBound * plane.bytesPerRow
            if pixels.format.hasAlpha { return WebPPictureImportRGBA(&strip, start, CInt(plane.bytesPerRow)) != 0 }
            guard pixels.format == .gray8 else {
                return WebPPictureImportRGB(&strip, start, CInt(plane.bytesPerRow)) != 0
            }
            return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: plane.width * 3 * rows.count) { colors in
                guard let target = colors.baseAddress else { return false }
                for row in 0..<rows.count {
                    let (gray, color) = (start + row * plane.bytesPerRow, target + row * plane.width * 3)
                    for column in 0..<plane.width {
                        color[column * 3] = gray[column]
                        color[column * 3 + 1] = gray[column]
                        color[column * 3 + 2] = gray[column]
                    }
                }
                return WebPPictureImportRGB(&strip, target, CInt(plane.width * 3)) != 0
            }
        }
    }

    /// Encodes the image; it can be encoded again.
    borrowing func encode(_ config: inout WebPConfig) throws -> Data {
        var writer = WebPMemoryWriter()
        WebPMemoryWriterInit(&writer)
        let isEncoded = withUnsafeMutablePointer(to: &writer) { writer in
            self.image.pointee.writer = WebPMemoryWrite
            self.image.pointee.custom_ptr = UnsafeMutableRawPointer(writer)
            return WebPEncode(&config, self.image) != 0
        }
        guard isEncoded, let bytes = writer.mem else {
            WebPMemoryWriterClear(&writer)
            try Task.checkCancellation()
            throw self.error
        }
        return Data(bytesNoCopy: bytes, count: writer.size, deallocator: .custom { pointer, _ in WebPFree(pointer) })
    }

    /// Whether the image has an alpha plane.
    var hasAlpha: Bool { self.image.pointee.a != nil }

    /// Lends the image to the animation encoder.
    borrowing func withImage<Result>(_ body: (UnsafeMutablePointer<WebPPicture>) throws -> Result) rethrows -> Result {
        try body(self.image)
    }

    /// The error for libwebp's last failure.
    private var error: CodingError {
        self.image.pointee.error_code == VP8_ENC_ERROR_OUT_OF_MEMORY
            ? .outOfMemory(.webp)
            : .webpEncoding("libwebp gave error \(self.image.pointee.error_code.rawValue)")
    }
}

/// Adds metadata blocks to coded images.
///
/// Source: RFC 9649, sections 2.7.1.4 and 2.7.1.5; libwebp's muxer sets the flags of VP8X.
enum WebPMetadata {
    /// Returns the file with the blocks that `metadata` has.
    static func add(_ metadata: EncodeOptions.Metadata, to file: Data) throws(CodingError) -> Data {
        let blocks = [("ICCP", metadata.colorProfile), ("EXIF", metadata.exif), ("XMP ", metadata.xmp)]
            .compactMap { name, block in block.map { (name, $0) } }
        guard !blocks.isEmpty else { return file }
        guard let mux = Self.mux(of: file) else { throw .outOfMemory(.webp) }
        defer { WebPMuxDelete(mux) }
        for (name, block) in blocks {
            let isSet = Self.withWebPData(block) { WebPMuxSetChunk(mux, name, $0, 1) == WEBP_MUX_OK }
            guard isSet else { throw .webpEncoding("its \(name) block cannot be stored") }
        }
        var assembled = WebPData()
        guard WebPMuxAssemble(mux, &assembled) == WEBP_MUX_OK, let bytes = assembled.bytes else {
            throw .webpEncoding("its blocks of metadata cannot be stored")
        }
        return Data(webp: bytes, count: assembled.size)
    }

    private static func mux(of file: Data) -> OpaquePointer? {
        self.withWebPData(file) { WebPMuxCreate($0, 1) }
    }

    private static func withWebPData<Result>(_ data: Data, _ body: (UnsafePointer<WebPData>) -> Result) -> Result {
        data.withUnsafeBytes { bytes in
            // An empty block has no address, which libwebp rejects.
            withUnsafeBytes(of: UInt8(0)) { empty in
                let start = bytes.baseAddress ?? empty.baseAddress
                var lent = WebPData(bytes: start?.assumingMemoryBound(to: UInt8.self), size: bytes.count)
                return body(&lent)
            }
        }
    }
}

extension Data {
    /// Takes ownership of memory that libwebp allocated.
    init(webp bytes: UnsafePointer<UInt8>, count: Int) {
        self.init(
            bytesNoCopy: UnsafeMutableRawPointer(mutating: bytes),
            count: count,
            deallocator: .custom { pointer, _ in WebPFree(pointer) }
        )
    }
}
#endif
