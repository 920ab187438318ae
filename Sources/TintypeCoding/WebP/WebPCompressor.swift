import CWebP
import FoundationEssentials
import TintypeImage

/// Encodes stills with libwebp.
struct WebPCompressor {
    let options: EncodeOptions

    /// Encodes upright pixels.
    func compress(_ pixels: PixelBuffer) throws -> Data {
        let picture = try WebPSourcePicture(pixels, isLossless: self.options.compression.isLossless)
        return try self.options.smallestWebP { try self.compress(picture, quality: $0) }
    }

    private func compress(_ picture: borrowing WebPSourcePicture, quality: Int) throws -> Data {
        try Task.checkCancellation()
        var config = try self.options.webpConfig(quality: quality)
        return try WebPMetadata.add(self.options.metadata, to: try picture.encode(&config))
    }
}

extension EncodeOptions {
    /// The file that `compress` makes at the wanted quality or, where that is too large, at the best that fits.
    func smallestWebP(_ compress: (_ quality: Int) throws -> Data) throws -> Data {
        let quality = min(max(self.quality, 1), 100)
        let whole = try compress(quality)
        guard let limit = self.maximumByteCount, whole.count > limit else { return whole }
        guard !self.compression.isLossless else {
            throw CodingError.webpEncoding("without loss it takes \(whole.count) bytes of \(limit); choose lossy")
        }
        let largest = try Self.largest(below: quality) { quality in
            let data = try compress(quality)
            return data.count <= limit ? data : nil
        }
        if let largest { return largest }
        throw CodingError.webpEncoding("it does not fit \(limit) bytes at the lowest quality; make it smaller")
    }

    /// libwebp's options for these.
    func webpConfig(quality: Int) throws(CodingError) -> WebPConfig {
        var config = WebPConfig()
        var isValid = WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, Float(quality)) != 0
        switch self.compression {
        case .lossy: break
        case .lossless:
            // The effort that cwebp takes unless told otherwise; hidden colours are kept.
            isValid = isValid && WebPConfigLosslessPreset(&config, 6) != 0
            config.exact = 1
        case .nearLossless(let level):
            isValid = isValid && WebPConfigLosslessPreset(&config, 6) != 0
            config.near_lossless = CInt(min(max(level, 0), 100))
            // libwebp changes nothing where hidden colours are kept.
            config.exact = level >= 100 ? 1 : 0
        }
        guard isValid, WebPValidateConfig(&config) != 0 else { throw .webpEncoding("libwebp refused the options") }
        return config
    }
}

extension EncodeOptions.Compression {
    /// Whether VP8L is written.
    var isLossless: Bool { self != .lossy }
}

extension CodingError {
    /// A picture could not be written.
    static func webpEncoding(_ reason: String) -> CodingError {
        .notEncoded(.webp, "The picture can't be written as WebP: \(reason).")
    }
}

/// One picture as libwebp's encoder wants it; freed with the value.
struct WebPSourcePicture: ~Copyable {
    /// On the heap, because the encoder writes to it.
    private let picture: UnsafeMutablePointer<WebPPicture>

    /// Converts upright pixels.
    init(_ pixels: PixelBuffer, isLossless: Bool) throws {
        guard max(pixels.width, pixels.height) <= WEBP_MAX_DIMENSION else {
            throw CodingError.webpEncoding("a side may have at most \(WEBP_MAX_DIMENSION) pixels")
        }
        var picture = WebPPicture()
        guard WebPPictureInit(&picture) != 0 else { throw CodingError.webpEncoding("libwebp has another version") }
        picture.width = CInt(pixels.width)
        picture.height = CInt(pixels.height)
        picture.use_argb = isLossless ? 1 : 0
        picture.progress_hook = { _, _ in Task.isCancelled ? 0 : 1 }
        guard try Self.fill(&picture, with: pixels) else {
            WebPPictureFree(&picture)
            throw CodingError.outOfMemory(.webp)
        }
        self.picture = .allocate(capacity: 1)
        self.picture.initialize(to: picture)
    }

    deinit {
        WebPPictureFree(self.picture)
        self.picture.deallocate()
    }

    private static func fill(_ picture: inout WebPPicture, with pixels: PixelBuffer) throws -> Bool {
        let pixels = pixels.format == .gray8 ? try pixels.converted(to: .rgb8) : pixels
        let bytesPerRow = CInt(pixels.layout.planes[0].bytesPerRow)
        return pixels.withUnsafeBytes { source in
            let bytes = source.baseAddress?.assumingMemoryBound(to: UInt8.self)
            return pixels.format.hasAlpha
                ? WebPPictureImportRGBA(&picture, bytes, bytesPerRow) != 0
                : WebPPictureImportRGB(&picture, bytes, bytesPerRow) != 0
        }
    }

    /// Encodes the picture; it may be encoded again.
    borrowing func encode(_ config: inout WebPConfig) throws -> Data {
        var writer = WebPMemoryWriter()
        WebPMemoryWriterInit(&writer)
        let isEncoded = withUnsafeMutablePointer(to: &writer) { writer in
            self.picture.pointee.writer = WebPMemoryWrite
            self.picture.pointee.custom_ptr = UnsafeMutableRawPointer(writer)
            return WebPEncode(&config, self.picture) != 0
        }
        guard isEncoded, let bytes = writer.mem else {
            WebPMemoryWriterClear(&writer)
            try Task.checkCancellation()
            throw self.error
        }
        return Data(bytesNoCopy: bytes, count: writer.size, deallocator: .custom { pointer, _ in WebPFree(pointer) })
    }

    /// Lends the picture to the animation encoder.
    borrowing func withPicture<Result>(_ body: (UnsafeMutablePointer<WebPPicture>) throws -> Result) rethrows -> Result
    {
        try body(self.picture)
    }

    /// What libwebp says about its last failure.
    private var error: CodingError {
        self.picture.pointee.error_code == VP8_ENC_ERROR_OUT_OF_MEMORY
            ? .outOfMemory(.webp)
            : .webpEncoding("libwebp gave error \(self.picture.pointee.error_code.rawValue)")
    }
}

/// Writes blocks of metadata around coded pictures.
///
/// Source: RFC 9649, sections 2.7.1.4 and 2.7.1.5; the flags of VP8X are set by libwebp's muxer.
enum WebPMetadata {
    /// The file with the blocks that there are.
    static func add(_ metadata: EncodeOptions.Metadata, to file: Data) throws(CodingError) -> Data {
        let blocks = [("ICCP", metadata.colorProfile), ("EXIF", metadata.exif), ("XMP ", metadata.xmp)]
            .compactMap { name, block in block.map { (name, $0) } }
        guard !blocks.isEmpty else { return file }
        guard let mux = Self.mux(of: file) else { throw .outOfMemory(.webp) }
        defer { WebPMuxDelete(mux) }
        for (name, block) in blocks {
            let isSet = Self.withWebPData(block) { WebPMuxSetChunk(mux, name, $0, 1) == WEBP_MUX_OK }
            guard isSet else { throw .webpEncoding("its \(name) block can't be stored") }
        }
        var assembled = WebPData()
        guard WebPMuxAssemble(mux, &assembled) == WEBP_MUX_OK, let bytes = assembled.bytes else {
            throw .webpEncoding("its blocks of metadata can't be stored")
        }
        return Data(webp: bytes, count: assembled.size)
    }

    private static func mux(of file: Data) -> OpaquePointer? {
        self.withWebPData(file) { WebPMuxCreate($0, 1) }
    }

    private static func withWebPData<Result>(_ data: Data, _ body: (UnsafePointer<WebPData>) -> Result) -> Result {
        data.withUnsafeBytes { bytes in
            // An empty block has no address, which libwebp takes for a mistake.
            withUnsafeBytes(of: UInt8(0)) { empty in
                let start = bytes.baseAddress ?? empty.baseAddress
                var lent = WebPData(bytes: start?.assumingMemoryBound(to: UInt8.self), size: bytes.count)
                return body(&lent)
            }
        }
    }
}

extension Data {
    /// Takes over memory that libwebp allocated.
    init(webp bytes: UnsafePointer<UInt8>, count: Int) {
        self.init(
            bytesNoCopy: UnsafeMutableRawPointer(mutating: bytes),
            count: count,
            deallocator: .custom { pointer, _ in WebPFree(pointer) }
        )
    }
}
