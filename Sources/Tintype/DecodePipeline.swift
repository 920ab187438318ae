import FoundationEssentials
import TintypeCoding
import TintypeConcurrency
import TintypeImage
import TintypeTransforms

/// Bytes to picture, whole on one lane: header, limits, memory gate, decode, resize, turn.
struct DecodePipeline: Sendable {
    let registry: CoderRegistry
    let lanes: DecodeLanes
    /// Bounds the bytes of pixels that all decodes hold together.
    let gate: WeightedGate
    let limits: DecodingLimits

    /// Decodes `data` as `request` asks.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    func image(from data: Data, for request: ImageRequest) async throws -> Image {
        // The weight is known only from the header, and the lane must not wait for the gate:
        // so there are two visits, the first of microseconds.
        let rendering = try await self.lanes.run {
            let decoder = try ImageDecoder(data, registry: self.registry, limits: self.limits)
            return try Rendering(decoder: decoder, request: request, limits: self.limits)
        }
        return try await self.gate.withWeight(rendering.byteCount) {
            try await self.lanes.run { try rendering.render() }
        }
    }

    /// What the start of `data` says about its picture; the limits are checked.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func header(of data: Data) async throws -> ImageHeader {
        try await self.lanes.run { try ImageDecoder(data, registry: self.registry, limits: self.limits).header }
    }

    /// The bytes of `image` in `format`.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) async throws -> Data {
        let coder = try self.registry.coder(encoding: format)
        return try await self.lanes.run { try coder.encode(image, as: format, options: options) }
    }
}

/// One picture that is to be made, its header read and its size decided.
private struct Rendering: Sendable {
    /// The resampler is given at least this many times the target's pixels a side: what the
    /// codec leaves out below that costs sharpness.
    private static let oversampling = 2

    private let decoder: ImageDecoder
    private let options: DecodeOptions
    private let filter: Resize.Filter
    /// In stored pixels, before the picture is turned upright: the turn is cheaper afterwards.
    private let geometry: ResizeGeometry?

    init(decoder: ImageDecoder, request: ImageRequest, limits: DecodingLimits) throws {
        var options = DecodeOptions(limits: limits, allowsTruncated: request.options.contains(.allowTruncated))
        self.decoder = decoder
        self.filter = request.thumbnail?.filter ?? .lanczos3
        self.geometry = try request.thumbnail.map { resize in
            let size = decoder.header.uprightSize
            let upright = try ResizeGeometry(resize, width: size.width, height: size.height)
            return decoder.header.orientation.swapsSides ? upright.transposed : upright
        }
        if let geometry {
            try Self.check(geometry, header: decoder.header, limits: limits)
            options.sufficientSize = Self.sufficientSize(for: geometry, header: decoder.header)
        }
        self.options = options
    }

    /// The bytes that the picture will take at most while it is made.
    var byteCount: Int {
        let target = self.geometry.map { $0.width.saturatingMultiplied(by: $0.height).saturatingMultiplied(by: 4) }
        return self.decoder.byteCount(options: self.options).saturatingAdded(to: target ?? 0)
    }

    func render() throws -> Image {
        let decoded = try self.decoder.decodeStored(options: self.options)
        guard let geometry else { return try decoded.image.upright() }
        let header = self.decoder.header
        let scaled = geometry.scaled(
            byWidth: decoded.coveredWidth / Double(header.pixelWidth),
            height: decoded.coveredHeight / Double(header.pixelHeight)
        )
        try Task.checkCancellation()
        return try decoded.image.resized(scaled, filter: self.filter).upright()
    }

    /// Refuses to enlarge a picture beyond what one may have that is decoded.
    private static func check(_ geometry: ResizeGeometry, header: ImageHeader, limits: DecodingLimits) throws {
        let isLarger = geometry.width > header.pixelWidth || geometry.height > header.pixelHeight
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
