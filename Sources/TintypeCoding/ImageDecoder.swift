// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeImage

/// Decodes untrusted bytes: finds the format by signature, checks limits against the header, then decodes pixels.
public struct ImageDecoder: Sendable {
    private let limits: DecodingLimits
    /// The file, as its coder opened it.
    public private(set) var encoded: any EncodedImage
    /// The header of the image, which is within the limits.
    public let header: ImageHeader

    /// Reads the header of `data` and checks the limits.
    ///
    /// Allocates no pixel memory.
    ///
    /// ```swift
    /// let limits = DecodingLimits(maximumPixels: 40_000_000)
    /// let decoder = try ImageDecoder(data, registry: CoderRegistry(), limits: limits)
    /// print(decoder.header.format, decoder.header.uprightSize)
    /// ```
    ///
    /// - Parameters:
    ///   - data: The encoded bytes.
    ///   - registry: The coders to choose from by the format of the bytes.
    ///   - coder: A coder to use instead of one from the registry; `nil` by default.
    ///   - limits: The most that the image may cost.
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

    /// Returns the image's metadata: its capture data and its metadata blocks.
    ///
    /// Decodes no pixels.
    ///
    /// Broken parts of the metadata are left out and cause no error.
    ///
    /// ```swift
    /// let camera = try ImageDecoder(data, registry: CoderRegistry()).metadata().cameraModel
    /// ```
    ///
    /// - Throws: `CodingError` for a file that takes too much work, `CancellationError`.
    public func metadata() throws -> ImageMetadata {
        try self.encoded.metadata(limits: self.limits)
    }

    /// Decodes the image upright, and in sRGB unless the options say otherwise.
    ///
    /// ```swift
    /// let image = try ImageDecoder(data, registry: CoderRegistry()).decode()
    /// ```
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    public func decode(options: DecodeOptions = DecodeOptions()) throws -> Image {
        try self.finish(try self.decodeStored(options: options).image, options: options)
    }

    /// Decodes the image as stored: the image carries its orientation but is not turned, and its samples are not
    /// converted.
    ///
    /// ```swift
    /// let stored = try ImageDecoder(data, registry: CoderRegistry()).decodeStored()
    /// print(stored.image.orientation)
    /// ```
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

    /// Refuses a decoded image that is larger than its header declared, or that claims to cover more than its own size.
    ///
    /// The limits were checked against the header, and the coder may be a user's.
    private func check(width: Int, height: Int, covered: (width: Double, height: Double)) throws(CodingError) {
        let isWithin = width <= self.header.pixelWidth && height <= self.header.pixelHeight
        let covers = 0..<Double(width).nextUp ~= covered.width && 0..<Double(height).nextUp ~= covered.height
        guard isWithin, covers else {
            throw .corrupt(self.header.format, "its coder gave another size than its header")
        }
    }

    /// Converts the samples to sRGB and turns the image upright.
    ///
    /// These are the last steps of a decode. They cost least after the image was made smaller.
    ///
    /// ```swift
    /// let decoder = try ImageDecoder(data, registry: CoderRegistry())
    /// let small = try decoder.decodeStored().image.resized(.width(400))
    /// let image = try decoder.finish(small)
    /// ```
    ///
    /// - Parameters:
    ///   - image: The decoded image, resized or not.
    ///   - options: The options that say how the colour profile is handled.
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

    /// Returns a reader of the animation's frames, or `nil` for a still image.
    ///
    /// ```swift
    /// let reader = try ImageDecoder(data, registry: CoderRegistry()).frameReader()
    /// print(reader?.frames.count ?? 1)
    /// ```
    ///
    /// - Throws: `CodingError`.
    public func frameReader(options: DecodeOptions = DecodeOptions()) throws -> (any FrameReader)? {
        try self.encoded.frameReader(options: options)
    }

    /// Returns a compositor that draws the animation's frames on their canvas, or `nil` for a still image.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out.
    package func makeCompositor(options: DecodeOptions = DecodeOptions()) throws -> FrameCompositor? {
        try self.frameReader(options: options).map {
            try FrameCompositor($0, limits: options.limits, format: self.header.format)
        }
    }

    /// Passes the stored rows to `body`, which reads them one by one.
    ///
    /// Returns `nil` if the image cannot be streamed.
    ///
    /// ```swift
    /// let decoder = try ImageDecoder(data, registry: CoderRegistry())
    /// let layout = try decoder.withRows(options: DecodeOptions()) { rows, _, _ in rows.layout }
    /// ```
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`, any error of `body`.
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

    /// Returns the most memory in bytes that decoding has allocated at once, for the memory gate.
    ///
    /// This covers the coder's work, the conversion to sRGB and the turn. It counts neither the encoded bytes nor
    /// images that the decoder returned earlier.
    ///
    /// ```swift
    /// let decoder = try ImageDecoder(data, registry: CoderRegistry())
    /// let byteCount = decoder.byteCount(options: DecodeOptions())
    /// ```
    ///
    /// - Parameters:
    ///   - kind: The kind of decode.
    ///   - options: The options of the decode.
    /// - Returns: The bytes, or `Int.max` for an image that does not fit in memory.
    public func byteCount(for kind: DecodeKind = .image, options: DecodeOptions) -> Int {
        let coding = self.encoded.byteCount(for: kind, options: options)
        guard kind != .rows, let layout = try? self.encoded.decodedLayout(options: options) else { return coding }
        let image = layout.byteCount
        let finishing = self.header.finishingByteCount(of: image, as: layout.format, options: options)
        // The coder keeps its own memory while the copy that it returned is finished.
        let isKept = kind != .image
        return isKept ? coding.saturatingAdded(to: finishing - min(image, finishing)) : max(coding, finishing)
    }
}
