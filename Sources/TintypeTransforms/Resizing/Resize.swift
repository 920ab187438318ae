public import TintypeImage

/// How a picture is brought to a size.
///
/// Never enlarges unless ``upscales`` is set: a picture smaller than the box stays as it is,
/// but for the cut that `fill` makes and the narrower side that `stretch` makes.
public struct Resize: Sendable, Hashable {
    /// How the box is met.
    public enum Mode: String, Sendable, Hashable, CaseIterable {
        /// As large as fits into the box, in the picture's own ratio.
        case fit
        /// Covers the box; what stands over is cut off evenly at both ends.
        case fill
        /// Exactly the box; each side is scaled by itself.
        case stretch
    }

    /// The kernels to resample with.
    public enum Filter: String, Sendable, Hashable, CaseIterable {
        /// Lanczos with three lobes: the sharpest; the default.
        case lanczos3
        /// Bicubic (Catmull-Rom): a little softer, less ringing.
        case bicubic
        /// Bilinear: soft and fast.
        case bilinear
        /// The nearest pixel, for pixel art.
        case nearest
    }

    /// The width of the box in pixels, at least 1.
    public var width: Int
    /// The height of the box in pixels, at least 1.
    public var height: Int
    /// How the box is met.
    public var mode: Mode
    /// Whether a picture that is smaller than the box is enlarged.
    public var upscales: Bool
    /// The kernel to resample with.
    public var filter: Filter

    /// Describes a resize.
    public init(width: Int, height: Int, mode: Mode = .fit, upscales: Bool = false, filter: Filter = .lanczos3) {
        self.width = width
        self.height = height
        self.mode = mode
        self.upscales = upscales
        self.filter = filter
    }

    /// As large as fits into the box, in the picture's own ratio.
    public static func fit(width: Int, height: Int, upscales: Bool = false) -> Resize {
        Resize(width: width, height: height, mode: .fit, upscales: upscales)
    }

    /// Covers the box; what stands over is cut off evenly.
    public static func fill(width: Int, height: Int, upscales: Bool = false) -> Resize {
        Resize(width: width, height: height, mode: .fill, upscales: upscales)
    }

    /// Exactly the box; each side is scaled by itself.
    public static func stretch(width: Int, height: Int, upscales: Bool = false) -> Resize {
        Resize(width: width, height: height, mode: .stretch, upscales: upscales)
    }

    /// Every parameter, in a canonical text: a part of cache keys.
    public var key: String {
        "resize(\(self.width)x\(self.height),\(self.mode.rawValue),\(self.filter.rawValue)\(self.upscales ? ",up" : ""))"
    }
}

extension Resize: GeometricTransformer {
    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        let geometry = try ResizeGeometry(self, width: source.width, height: source.height)
        return TransformFootprint(
            result: try PixelLayout(format: source.format, width: geometry.width, height: geometry.height),
            workingByteCount: geometry.byteCount(width: source.width, height: source.height, format: source.format)
        )
    }

    public func transform(_ image: Image) throws -> Image { try image.resized(self) }

    package func add(to geometry: inout TransformGeometry) throws(TransformError) -> Bool { try geometry.resize(self) }
}
