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
    /// - Throws: `CodingError`, `CancellationError`.
    public init(
        _ data: Data,
        registry: CoderRegistry,
        coder: (any ImageCoder)? = nil,
        limits: DecodingLimits = DecodingLimits()
    ) throws {
        try limits.check(data)
        if let coder {
            self.coder = coder
        } else {
            self.coder = try registry.coder(decoding: data)
        }
        let header = try self.coder.header(of: data, limits: limits)
        try limits.check(header)
        self.header = header
        self.data = data
    }

    /// Decodes the picture, upright and in sRGB unless the options keep its profile.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    public func decode(options: DecodeOptions = DecodeOptions()) throws -> Image {
        try self.finish(try self.decodeStored(options: options).image, options: options)
    }

    /// Decodes the picture as it is stored: not turned, its orientation noted on the image, and
    /// its samples not converted.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    public func decodeStored(options: DecodeOptions = DecodeOptions()) throws -> DecodedImage {
        try Task.checkCancellation()
        let frameCount = self.header.animation.frameCount
        guard (0..<frameCount).contains(options.frame) else {
            throw CodingError.noFrame(options.frame, in: self.header)
        }
        if frameCount > 1, let reader = try self.frameReader(options: options) {
            let compositor = try FrameCompositor(reader, limits: options.limits, format: self.header.format)
            let pixels = try compositor.frame(at: options.frame, isLast: true)
            return DecodedImage(
                Image(pixels: pixels, orientation: self.header.orientation, sourceFormat: self.header.format)
            )
        }
        let decoded = try self.coder.decode(self.data, header: self.header, options: options)
        try Task.checkCancellation()
        try self.check(
            width: decoded.image.width,
            height: decoded.image.height,
            covered: (decoded.coveredWidth, decoded.coveredHeight)
        )
        return decoded
    }

    /// Refuses a picture that is larger than its header said, or covers more than it has: coders may
    /// be a user's, and the limits were checked by the header.
    private func check(width: Int, height: Int, covered: (width: Double, height: Double)) throws(CodingError) {
        let isWithin = width <= self.header.pixelWidth && height <= self.header.pixelHeight
        let covers = 0..<Double(width).nextUp ~= covered.width && 0..<Double(height).nextUp ~= covered.height
        guard isWithin, covers else {
            throw .corrupt(self.header.format, "its coder gave another size than its header")
        }
    }

    /// Brings the samples to sRGB and turns the picture upright: the last steps of a decode,
    /// which cost least on a picture that was made smaller before.
    ///
    /// - Parameters:
    ///   - image: What a decode gave, perhaps resized.
    ///   - options: Say what becomes of the profile.
    ///   - turnsUpright: Whether the orientation is applied.
    /// - Returns: The finished picture.
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    public func finish(
        _ image: consuming Image,
        options: DecodeOptions = DecodeOptions(),
        turnsUpright: Bool = true
    ) throws -> Image {
        var image = image
        if let profile = self.header.colorProfile {
            switch options.color {
            case .convert(let intent):
                let converted = try ColorConverter.shared.convert(image.pixels, from: profile, intent: intent)
                image = image.replacingPixels(converted, orientation: image.orientation)
            case .keep:
                // CMYK was mixed to RGB, which its profile knows nothing of.
                if LittleCMSProfile.matches(profile, image.pixels.format) {
                    image = image.tagged(with: ColorProfile(data: profile))
                }
            case .ignore: break
            }
        }
        try Task.checkCancellation()
        return turnsUpright ? try image.upright() : image
    }

    /// The frames of an animation, or `nil` for a still picture.
    ///
    /// - Throws: `CodingError`.
    public func frameReader(options: DecodeOptions = DecodeOptions()) throws -> (any FrameReader)? {
        try self.coder.frameReader(for: self.data, header: self.header, options: options)
    }

    /// Draws the frames of an animation on their canvas; `nil` for a still picture.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out.
    package func makeCompositor(options: DecodeOptions = DecodeOptions()) throws -> FrameCompositor? {
        try self.frameReader(options: options).map {
            try FrameCompositor($0, limits: options.limits, format: self.header.format)
        }
    }

    /// Lends the stored rows one by one; `nil` when the picture can't be streamed.
    ///
    /// - Throws: `CodingError`, `CancellationError`, what `body` throws.
    public func withRows<Result>(
        options: DecodeOptions,
        _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
    ) throws -> Result? {
        guard self.header.animation.frameCount == 1 else { return nil }
        return try self.coder.withRows(of: self.data, header: self.header, options: options) { rows, width, height in
            try self.check(width: rows.layout.width, height: rows.layout.height, covered: (width, height))
            return try body(rows, width, height)
        }
    }

    /// The bytes of memory that decoding has allocated at most at once, for the memory gate: while the coder works, and
    /// while its picture is brought to sRGB and turned upright.
    ///
    /// The encoded bytes do not count, nor does what was given out before.
    ///
    /// - Parameters:
    ///   - kind: What is decoded.
    ///   - options: The options of the decode.
    /// - Returns: The bytes, or `Int.max` for a picture that no memory holds.
    public func byteCount(for kind: DecodeKind = .picture, options: DecodeOptions) -> Int {
        self.coder.byteCountWithFinishing(for: kind, header: self.header, options: options)
    }

    /// The bytes that ``decodeStored(options:)`` takes, and those of what it gives.
    package func storedByteCounts(options: DecodeOptions) -> (peak: Int, picture: Int) {
        (
            self.coder.byteCount(for: .picture, header: self.header, options: options),
            self.coder.decodedByteCount(of: self.header, options: options)
        )
    }

    /// The size of what ``decodeStored(options:)`` gives.
    package func decodedSize(options: DecodeOptions) -> PixelSize {
        self.coder.decodedSize(of: self.header, options: options)
    }

    /// The bytes of a picture of a size in the format of this one.
    package func byteCount(ofWidth width: Int, height: Int) -> Int {
        self.header.byteCount(of: PixelSize(width: width, height: height), as: self.header.decodedFormat)
    }

    /// The bytes of a picture and its copies while ``finish(_:options:turnsUpright:)`` works on it.
    ///
    /// - Parameters:
    ///   - picture: The bytes of the picture.
    ///   - options: The options of the decode.
    /// - Returns: The bytes.
    package func finishingByteCount(of picture: Int, options: DecodeOptions) -> Int {
        self.header.finishingByteCount(of: picture, options: options)
    }
}

extension ImageCoder {
    /// The bytes that a decode of a kind has allocated at most at once, with what brings its picture to sRGB and turns
    /// it upright.
    package func byteCountWithFinishing(for kind: DecodeKind, header: ImageHeader, options: DecodeOptions) -> Int {
        let coding = self.byteCount(for: kind, header: header, options: options)
        let picture = self.decodedByteCount(of: header, options: options)
        let finishing = header.finishingByteCount(of: picture, options: options)
        switch kind {
        case .picture: return max(coding, finishing)
        // Rows are finished by the caller.
        case .rows: return coding
        // The coder keeps what it has while the copy that it gave out is finished.
        case .frame, .incremental: return coding.saturatingAdded(to: finishing - min(picture, finishing))
        }
    }
}

extension ImageHeader {
    /// The bytes of a picture and its copies while it is brought to sRGB and turned upright.
    fileprivate func finishingByteCount(of picture: Int, options: DecodeOptions) -> Int {
        var converted = picture
        var most = picture
        // Four inks are mixed by the codec, whatever their profile is for.
        if self.colorProfile != nil, !self.isConvertedByCodec, case .convert = options.color {
            // Gray of a profile for colours becomes colour before.
            let isGray = self.decodedFormat == .gray8
            converted = picture.saturatingMultiplied(by: isGray ? 3 : 1)
            most = picture.saturatingAdded(to: converted).saturatingAdded(to: isGray ? converted : 0)
        }
        // One copy for the turn, of what a conversion left.
        let turned = self.orientation == .up ? 0 : converted.saturatingMultiplied(by: 2)
        return max(most, turned)
    }
}
