public import FoundationEssentials
public import TintypeImage

/// Decodes bytes safely: format by signature, limits from the header, then pixels.
public struct ImageDecoder: Sendable {
    private let limits: DecodingLimits
    /// The file, as its coder opened it.
    public private(set) var encoded: any EncodedImage
    /// What the file says about its image; it is within the limits.
    public let header: ImageHeader

    /// Reads the header of `data` and checks the limits; no pixel memory is allocated.
    ///
    /// - Parameters:
    ///   - data: The encoded bytes.
    ///   - registry: The coders to ask.
    ///   - coder: A coder to use instead of asking the registry.
    ///   - limits: What the image may cost.
    /// - Throws: `CodingError`, `CancellationError`.
    public init(
        _ data: Data,
        registry: CoderRegistry,
        coder: (any ImageCoder)? = nil,
        limits: DecodingLimits = DecodingLimits()
    ) throws {
        try limits.check(data)
        self.limits = limits
        let coder = try coder ?? registry.coder(decoding: data)
        self.encoded = try coder.open(data, limits: limits)
        self.header = self.encoded.header
        try limits.check(self.header)
    }

    /// How and where the image was taken, and its blocks of metadata; no pixels are decoded.
    ///
    /// - Throws: `CodingError` for a file that takes too much work, `CancellationError`; what is broken of the metadata is
    ///   left out.
    public func metadata() throws -> ImageMetadata {
        try self.encoded.metadata(limits: self.limits)
    }

    /// Decodes the image, upright and in sRGB unless the options keep its profile.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    public func decode(options: DecodeOptions = DecodeOptions()) throws -> Image {
        try self.finish(try self.decodeStored(options: options).image, options: options)
    }

    /// Decodes the image as it is stored: not turned, its orientation noted on the image, and
    /// its samples not converted.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    public func decodeStored(options: DecodeOptions = DecodeOptions()) throws -> DecodedImage {
        try Task.checkCancellation()
        let frameCount = self.header.animation.frameCount
        guard (0..<frameCount).contains(options.frame) else {
            throw CodingError.noFrame(options.frame, of: self.header.animation.frameCount, self.header.format)
        }
        if frameCount > 1, let reader = try self.frameReader(options: options) {
            return try self.encoded.composited(reader, options: options)
        }
        let decoded = try self.encoded.decode(options: options)
        try Task.checkCancellation()
        try self.check(
            width: decoded.image.width,
            height: decoded.image.height,
            covered: (decoded.coveredWidth, decoded.coveredHeight)
        )
        return decoded
    }

    /// Refuses an image that is larger than its header said, or covers more than it has: coders may
    /// be a user's, and the limits were checked by the header.
    private func check(width: Int, height: Int, covered: (width: Double, height: Double)) throws(CodingError) {
        let isWithin = width <= self.header.pixelWidth && height <= self.header.pixelHeight
        let covers = 0..<Double(width).nextUp ~= covered.width && 0..<Double(height).nextUp ~= covered.height
        guard isWithin, covers else {
            throw .corrupt(self.header.format, "its coder gave another size than its header")
        }
    }

    /// Brings the samples to sRGB and turns the image upright: the last steps of a decode,
    /// which cost least on an image that was made smaller before.
    ///
    /// - Parameters:
    ///   - image: What a decode gave, perhaps resized.
    ///   - options: Say what becomes of the profile.
    ///   - turnsUpright: Whether the orientation is applied.
    /// - Returns: The finished image.
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    public func finish(
        _ image: consuming Image,
        options: DecodeOptions = DecodeOptions(),
        turnsUpright: Bool = true
    ) throws -> Image {
        try self.header.finish(image, options: options, turnsUpright: turnsUpright)
    }

    /// The frames of an animation, or `nil` for a still image.
    ///
    /// - Throws: `CodingError`.
    public func frameReader(options: DecodeOptions = DecodeOptions()) throws -> (any FrameReader)? {
        try self.encoded.frameReader(options: options)
    }

    /// Draws the frames of an animation on their canvas; `nil` for a still image.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out.
    package func makeCompositor(options: DecodeOptions = DecodeOptions()) throws -> FrameCompositor? {
        try self.frameReader(options: options).map {
            try FrameCompositor($0, limits: options.limits, format: self.header.format)
        }
    }

    /// Lends the stored rows one by one; `nil` when the image can't be streamed.
    ///
    /// - Throws: `CodingError`, `CancellationError`, what `body` throws.
    public func withRows<Result>(
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result? {
        guard self.header.animation.frameCount == 1 else { return nil }
        return try self.encoded.withRows(options: options) { rows, width, height in
            try self.check(width: rows.layout.width, height: rows.layout.height, covered: (width, height))
            return try body(rows, width, height)
        }
    }

    /// Returns a decoder whose next decode of `kind` other lanes can help with; `nil` if one lane is as fast.
    package func parallelDecode(
        _ kind: DecodeKind,
        options: DecodeOptions
    ) -> (decoder: ImageDecoder, parallel: ParallelDecode)? {
        guard self.header.animation.frameCount == 1,
            let parallel = self.encoded.parallelDecode(kind, options: options)
        else { return nil }
        var decoder = self
        decoder.encoded = parallel.image
        return (decoder, parallel)
    }

    /// The bytes of memory that decoding has allocated at most at once, for the memory gate: while the coder works, and
    /// while its image is brought to sRGB and turned upright.
    ///
    /// The encoded bytes do not count, nor does what was given out before.
    ///
    /// - Parameters:
    ///   - kind: What is decoded.
    ///   - options: The options of the decode.
    /// - Returns: The bytes, or `Int.max` for an image that no memory holds.
    public func byteCount(for kind: DecodeKind = .picture, options: DecodeOptions) -> Int {
        let coding = self.encoded.byteCount(for: kind, options: options)
        guard kind != .rows, let layout = try? self.encoded.decodedLayout(options: options) else { return coding }
        let picture = layout.byteCount
        let finishing = self.header.finishingByteCount(of: picture, as: layout.format, options: options)
        // The coder keeps what it has while the copy that it gave out is finished.
        let isKept = kind != .picture
        return isKept ? coding.saturatingAdded(to: finishing - min(picture, finishing)) : max(coding, finishing)
    }
}
