import TintypeCaching
package import TintypeCoding
package import TintypeImage
import TintypeTransforms

/// How one picture is to be made of its file: its header read, its size and its way decided.
package struct DecodePlan: Sendable {
    /// The resampler is given at least this many times the target's pixels a side: what the
    /// codec leaves out below that costs sharpness.
    private static let oversampling = 2
    /// The bytes of decoded pixels from which on rows are resampled as they are decoded, so that the picture is
    /// never there whole.
    ///
    /// Below, several sizes can share what was decoded.
    private static let streamingThreshold = 32 << 20

    private let decoder: ImageDecoder
    private let options: DecodeOptions
    private let resampling: Resampling
    /// In stored pixels, before the picture is turned upright: the turn is cheaper afterwards.
    private let geometry: ResizeGeometry?

    package init(decoder: ImageDecoder, request: ImageRequest, limits: DecodingLimits) throws {
        self.decoder = decoder
        self.resampling = request.resampling
        self.geometry = try Self.geometry(for: request, header: decoder.header, limits: limits)
        var options = DecodeOptions(request, limits: limits)
        options.sufficientSize = self.geometry.map { Self.sufficientSize(for: $0, header: decoder.header) }
        self.options = options
    }

    /// How previews and frames become what `request` asks for; `nil` where that is the whole picture.
    static func resizing(
        for request: ImageRequest,
        header: ImageHeader,
        limits: DecodingLimits
    ) throws -> StoredResizing? {
        guard let geometry = try Self.geometry(for: request, header: header, limits: limits) else { return nil }
        let (resampling, width, height) = (request.resampling, Double(header.pixelWidth), Double(header.pixelHeight))
        let scaled = { @Sendable (source: PixelSize) in
            geometry.scaled(byWidth: Double(source.width) / width, height: Double(source.height) / height)
        }
        return StoredResizing(
            sufficientSize: Self.sufficientSize(for: geometry, header: header),
            size: PixelSize(width: geometry.width, height: geometry.height),
            byteCount: { source in
                scaled(PixelSize(width: source.width, height: source.height)).byteCount(
                    width: source.width,
                    height: source.height,
                    format: source.format,
                    resampling: resampling
                )
            },
            resize: { try $0.resized(scaled(PixelSize(width: $0.width, height: $0.height)), resampling) }
        )
    }

    /// The whole picture as it is stored.
    init(decoder: ImageDecoder, limits: DecodingLimits) {
        self.decoder = decoder
        self.options = DecodeOptions(limits: limits)
        self.resampling = Resampling()
        self.geometry = nil
    }

    /// What the header says of the frames; `nil` for a still picture.
    var animation: EntryMetadata.Animation? {
        let timing = self.decoder.header.animation
        guard timing.frameCount > 1 else { return nil }
        return EntryMetadata.Animation(
            frameCount: timing.frameCount,
            loopCount: timing.loopCount,
            milliseconds: timing.totalDuration
        )
    }

    /// The bytes of memory that carrying out the plan takes at most at once.
    package var byteCount: Int {
        guard let geometry else { return self.decoder.byteCount(options: self.options) }
        // What no memory holds is weighed as such, and refused by the decode.
        guard let decoded = try? self.decoder.encoded.decodedLayout(options: self.options),
            let target = try? PixelLayout(format: decoded.format, width: geometry.width, height: geometry.height)
        else { return .max }
        // The target is converted and turned when nothing else is there any more.
        let finishing = self.decoder.header.finishingByteCount(
            of: target.byteCount,
            as: target.format,
            options: self.options
        )
        return max(self.decodingByteCount(decoded, target.byteCount, geometry), finishing)
    }

    private func decodingByteCount(_ decoded: PixelLayout, _ target: Int, _ geometry: ResizeGeometry) -> Int {
        let encoded = self.decoder.encoded
        let (width, height) = (decoded.width, decoded.height)
        guard self.isStreamed else {
            let scaled = self.scaled(geometry, coveredWidth: Double(width), coveredHeight: Double(height))
            let resampling = scaled.byteCount(
                width: width,
                height: height,
                format: decoded.format,
                resampling: self.resampling
            )
            let resizing = decoded.byteCount.saturatingAdded(to: target).saturatingAdded(to: resampling)
            return max(encoded.byteCount(for: .picture, options: self.options), resizing)
        }
        let header = self.decoder.header
        let strip = geometry.byteCount(
            width: header.pixelWidth,
            height: header.pixelHeight,
            format: decoded.format,
            resampling: self.resampling,
            isStreamed: true
        )
        return encoded.byteCount(for: .rows, options: self.options)
            .saturatingAdded(to: target).saturatingAdded(to: strip)
    }

    /// Whether the picture is so large that its rows are resampled as they are decoded.
    private var isStreamed: Bool {
        let encoded = self.decoder.encoded
        return encoded.givesRows
            && encoded.byteCount(for: .picture, options: self.options) >= Self.streamingThreshold
    }

    /// Makes the picture.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    package func decode() throws -> Image { try self.decode(nil) }

    /// Makes the picture, and takes note of what its parts took.
    func decode(_ record: LoadRecord?) throws -> Image {
        func decoding<Result>(_ work: () throws -> Result) throws -> Result {
            try record?.timing(.decode, work) ?? work()
        }
        guard let geometry else { return try decoding { try self.decoder.decode(options: self.options) } }
        if let streamed = try decoding({ try self.streamed(geometry) }) {
            return try self.decoder.finish(streamed, options: self.options)
        }
        return try self.picture(of: decoding { try self.decodeStep() }, record)
    }

    /// What the codec gives, as plans for other sizes may want it too; `nil` where the picture is not decoded whole, or
    /// is larger than that.
    var step: PixelLayout? {
        guard let geometry, !self.isStreamed,
            let layout = try? self.decoder.encoded.decodedLayout(options: self.options),
            geometry.width <= layout.width, geometry.height <= layout.height
        else { return nil }
        return layout
    }

    /// Decodes what ``step`` describes.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func decodeStep() throws -> DecodedImage {
        try self.decoder.decodeStored(options: self.options)
    }

    /// Makes the picture of what an equal step gave.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    func picture(of decoded: DecodedImage, _ record: LoadRecord?) throws -> Image {
        guard let geometry else { return try self.decode(record) }
        let transform = { try self.decoder.finish(self.resized(decoded, geometry), options: self.options) }
        return try record?.timing(.transform, transform) ?? transform()
    }

    private func resized(_ decoded: DecodedImage, _ geometry: ResizeGeometry) throws -> Image {
        let scaled = self.scaled(geometry, coveredWidth: decoded.coveredWidth, coveredHeight: decoded.coveredHeight)
        try Task.checkCancellation()
        return try decoded.image.resized(scaled, self.resampling)
    }

    /// The resized picture, made row by row; `nil` when it is small, or can't be streamed.
    private func streamed(_ geometry: ResizeGeometry) throws -> Image? {
        let header = self.decoder.header
        guard self.isStreamed else { return nil }
        return try self.decoder.withRows(options: self.options) { rows, coveredWidth, coveredHeight in
            let scaled = self.scaled(geometry, coveredWidth: coveredWidth, coveredHeight: coveredHeight)
            let image = try Image.resampling(rows, scaled, self.resampling)
            return Image(pixels: image.pixels, orientation: header.orientation, sourceFormat: header.format)
        }
    }

    /// The geometry for a picture that the codec scaled down.
    private func scaled(_ geometry: ResizeGeometry, coveredWidth: Double, coveredHeight: Double) -> ResizeGeometry {
        geometry.scaled(
            byWidth: coveredWidth / Double(self.decoder.header.pixelWidth),
            height: coveredHeight / Double(self.decoder.header.pixelHeight)
        )
    }

    private static func geometry(
        for request: ImageRequest,
        header: ImageHeader,
        limits: DecodingLimits
    ) throws -> ResizeGeometry? {
        let size = header.uprightSize
        var upright = try request.thumbnail.map { try ResizeGeometry($0, width: size.width, height: size.height) }
        if upright == nil, let limit = request.scaleDownLimit {
            upright = ResizeGeometry(pixelByteLimit: limit, width: size.width, height: size.height)
        }
        let geometry = upright?.stored(as: header.orientation, width: header.pixelWidth, height: header.pixelHeight)
        if let geometry {
            try Self.check(geometry, width: header.pixelWidth, height: header.pixelHeight, limits: limits)
        }
        return geometry
    }

    /// Refuses to enlarge a picture beyond what one may have that is decoded.
    static func check(_ geometry: ResizeGeometry, width: Int, height: Int, limits: DecodingLimits) throws {
        let isLarger = geometry.width > width || geometry.height > height
        let pixels = geometry.width.saturatingMultiplied(by: geometry.height)
        let side = max(geometry.width, geometry.height)
        guard isLarger, pixels > limits.maximumPixels || side > limits.maximumSide else { return }
        throw TransformError(
            code: .invalidSize,
            message: "A picture can't be enlarged to \(geometry.width)x\(geometry.height): the limits are "
                + "\(limits.maximumPixels) pixels and \(limits.maximumSide) a side. Ask for a smaller size."
        )
    }

    /// The whole picture's size at which the part that is read is oversampled enough.
    private static func sufficientSize(for geometry: ResizeGeometry, header: ImageHeader) -> PixelSize {
        func scaled(_ side: Int, _ target: Int, _ part: Double) -> Int {
            // More than is stored can't be read.
            Int(min(Double(side), (Double(side) * Double(target) * Double(self.oversampling) / part).rounded(.up)))
        }
        return PixelSize(
            width: scaled(header.pixelWidth, geometry.width, geometry.sourceWidth),
            height: scaled(header.pixelHeight, geometry.height, geometry.sourceHeight)
        )
    }
}

extension DecodeOptions {
    /// How `request` asks for its picture, its size aside.
    init(_ request: ImageRequest, limits: DecodingLimits) {
        self.init(
            limits: limits,
            allowsTruncated: request.options.contains(.allowTruncated),
            color: request.options.contains(.keepColorProfile) ? .keep : .convert(.relativeColorimetric),
            scale: request.pictureScale
        )
    }
}

extension ImageRequest {
    fileprivate var resampling: Resampling { self.thumbnail?.resampling ?? Resampling() }
}
