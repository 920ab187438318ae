import CWebP
import FoundationEssentials
import TintypeImage

/// Encodes stills with libwebp.
struct WebPCompressor {
    private let options: EncodeOptions

    init(_ options: EncodeOptions) {
        self.options = options
    }

    /// Encodes upright pixels.
    func compress(_ pixels: PixelBuffer) throws -> Data {
        let picture = try WebPSourcePicture(pixels, isLossless: self.options.compression.isLossless)
        let quality = self.options.webpQuality
        let whole = try self.compress(picture, quality: quality)
        guard let limit = self.options.maximumByteCount, whole.count > limit else { return whole }
        guard !self.options.compression.isLossless else {
            throw CodingError.webpEncoding("without loss it takes \(whole.count) bytes of \(limit); choose lossy")
        }
        return try Self.largest(within: limit, below: quality) { try self.compress(picture, quality: $0) }
    }

    /// The best quality below the wanted one whose file fits the limit: at most seven tries.
    static func largest(within limit: Int, below quality: Int, _ compress: (Int) throws -> Data) throws -> Data {
        var fitting: Data?
        var (low, high) = (1, quality - 1)
        while low <= high {
            let middle = (low + high) / 2
            let data = try compress(middle)
            if data.count <= limit {
                fitting = data
                low = middle + 1
            } else {
                high = middle - 1
            }
        }
        guard let fitting else {
            throw CodingError.webpEncoding("it does not fit \(limit) bytes at the lowest quality; make it smaller")
        }
        return fitting
    }

    private func compress(_ picture: borrowing WebPSourcePicture, quality: Int) throws -> Data {
        try Task.checkCancellation()
        var config = try self.options.webpConfig(quality: quality)
        return try WebPMetadata.add(self.options.metadata, to: try picture.encode(&config))
    }
}

extension EncodeOptions {
    /// The quality within libwebp's bounds.
    var webpQuality: Int { min(max(self.quality, 1), 100) }

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
        CodingError(
            code: .encodingFailed,
            message: "The picture can't be written as WebP: \(reason).",
            format: .webp
        )
    }
}
