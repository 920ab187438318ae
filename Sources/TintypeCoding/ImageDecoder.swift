public import FoundationEssentials
public import TintypeImage

/// Decodes bytes safely: format by signature, limits from the header, then pixels.
public struct ImageDecoder: Sendable {
    private let data: Data
    private let coder: any ImageCoder
    /// What the file says about its picture; it is within the limits.
    public let header: ImageHeader

    /// Reads the header of `data` and checks the limits; no pixel memory is allocated.
    ///
    /// - Parameters:
    ///   - data: The encoded bytes.
    ///   - registry: The coders to ask.
    ///   - coder: A coder to use instead of asking the registry.
    ///   - limits: What the picture may cost.
    /// - Throws: `CodingError`.
    public init(
        _ data: Data,
        registry: CoderRegistry,
        coder: (any ImageCoder)? = nil,
        limits: DecodingLimits = DecodingLimits()
    ) throws(CodingError) {
        try limits.check(data)
        if let coder {
            self.coder = coder
        } else {
            self.coder = try registry.coder(decoding: data)
        }
        let header = try self.coder.header(of: data)
        try limits.check(header)
        self.header = header
        self.data = data
    }

    /// Decodes the picture and turns it upright.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    public func decode(options: DecodeOptions = DecodeOptions()) throws -> Image {
        try self.decodeStored(options: options).image.upright()
    }

    /// Decodes the picture as it is stored, with its orientation noted on the image.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    public func decodeStored(options: DecodeOptions = DecodeOptions()) throws -> DecodedImage {
        try Task.checkCancellation()
        guard self.header.animation.durations.indices.contains(options.frame) || options.frame == 0 else {
            throw CodingError(
                code: .invalidOptions,
                message:
                    "There is no frame \(options.frame): the picture has \(self.header.animation.frameCount), from 0 on.",
                format: self.header.format
            )
        }
        let decoded = try self.coder.decode(self.data, header: self.header, options: options)
        try Task.checkCancellation()
        return decoded
    }

    /// The bytes that decoding will take at most, for the memory gate: pixels of the decoded
    /// size, the turned copy, and what the codec holds.
    public func byteCount(options: DecodeOptions) -> Int {
        // Limits may be raised up to where these products overflow.
        var pixels = self.header.pixelWidth.saturatingMultiplied(by: self.header.pixelHeight)
        let isAnimated = !self.header.animation.durations.isEmpty
        let isScaledByCodec = self.header.format == .jpeg || (self.header.format == .webp && !isAnimated)
        if let size = options.sufficientSize, isScaledByCodec {
            // The decoded size is below twice that of the next smaller step: four times the pixels.
            pixels = min(pixels, size.width.saturatingMultiplied(by: size.height).saturatingMultiplied(by: 16))
        }
        let copies = self.header.orientation == .up ? 1 : 2
        // Frames of an animation are composited on a canvas with alpha.
        let bytesPerPixel = self.header.hasAlpha || isAnimated ? 4 : 3
        return pixels.saturatingMultiplied(by: bytesPerPixel * copies).saturatingAdded(to: self.header.codecByteCount)
    }
}
