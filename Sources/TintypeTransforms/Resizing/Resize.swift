public import TintypeImage

/// How an image is brought to a size.
///
/// Never enlarges unless ``upscales`` is set: an image smaller than the box stays as it is,
/// but for the cut that `fill` makes and the narrower side that `stretch` makes.
public struct Resize: Sendable, Hashable {
    /// What is known of the result's size.
    public enum Size: Sendable, Hashable {
        /// A box in pixels, of at least 1 a side; ``Resize/mode`` says how it is met.
        case box(width: Int, height: Int)
        /// The width in pixels, at least 1; the height follows from the image's ratio.
        case width(Int)
        /// The height in pixels, at least 1; the width follows from the image's ratio.
        case height(Int)
        /// Both sides as a share of the image's: 0.5 is half of each.
        case scale(Double)
    }

    /// How a box is met.
    ///
    /// Where one side or a scale is given, all modes are the same.
    public enum Mode: String, Sendable, Hashable, Codable, CaseIterable {
        /// As large as fits into the box, in the image's own ratio.
        case fit
        /// Covers the box; what stands over is cut off. Of an image that is smaller, the largest part with the box's
        /// ratio.
        case fill
        /// As `fill`, and never enlarged, whatever ``Resize/upscales`` says; `fill-down` of imgproxy.
        case fillDown
        /// As small as covers the box, in the image's own ratio; nothing is cut off.
        case cover
        /// Exactly the box; each side is scaled by itself.
        case stretch
    }

    /// The kernels to resample with.
    ///
    /// Where an image shrinks, all but `nearest` are widened by as much.
    public enum Filter: String, Sendable, Hashable, Codable, CaseIterable {
        /// Lanczos with three lobes: the sharpest; the default.
        case lanczos3
        /// Lanczos with two lobes: less ringing than with three.
        case lanczos2
        /// Bicubic (Catmull-Rom): a little softer, less ringing.
        case bicubic
        /// Mitchell and Netravali's cubic, with 1/3 and 1/3: softer still, for images that grow.
        case mitchell
        /// Bilinear: soft and fast.
        case bilinear
        /// The mean of what a pixel covers; where the image grows, nearly the nearest pixel.
        case box
        /// The nearest pixel, for pixel art.
        case nearest
    }

    /// What is known of the result's size.
    public var size: Size
    /// How a box is met.
    public var mode: Mode
    /// Whether an image that is smaller is enlarged.
    public var upscales: Bool
    /// The kernel to resample with.
    public var filter: Filter
    /// Which part `fill` and `fillDown` keep.
    public var gravity: Gravity
    /// Whether the kernel weighs samples as they are stored or by their light.
    public var light: LightSpace

    /// Describes a resize.
    public init(
        _ size: Size,
        mode: Mode = .fit,
        upscales: Bool = false,
        filter: Filter = .lanczos3,
        gravity: Gravity = .center,
        light: LightSpace = .sRGB
    ) {
        self.size = size
        self.mode = mode
        self.upscales = upscales
        self.filter = filter
        self.gravity = gravity
        self.light = light
    }

    /// Describes a resize to a box of `width` by `height` pixels.
    public init(
        width: Int,
        height: Int,
        mode: Mode = .fit,
        upscales: Bool = false,
        filter: Filter = .lanczos3,
        gravity: Gravity = .center,
        light: LightSpace = .sRGB
    ) {
        self.init(
            .box(width: width, height: height),
            mode: mode,
            upscales: upscales,
            filter: filter,
            gravity: gravity,
            light: light
        )
    }

    /// As large as fits into the box, in the image's own ratio.
    public static func fit(width: Int, height: Int, upscales: Bool = false) -> Resize {
        Resize(width: width, height: height, mode: .fit, upscales: upscales)
    }

    /// Covers the box; what stands over is cut off, evenly unless `gravity` says otherwise.
    public static func fill(
        width: Int,
        height: Int,
        upscales: Bool = false,
        gravity: Gravity = .center
    ) -> Resize {
        Resize(width: width, height: height, mode: .fill, upscales: upscales, gravity: gravity)
    }

    /// Covers the box, or is the largest part with the box's ratio: never enlarges.
    public static func fillDown(width: Int, height: Int, gravity: Gravity = .center) -> Resize {
        Resize(width: width, height: height, mode: .fillDown, gravity: gravity)
    }

    /// Exactly the box; each side is scaled by itself.
    public static func stretch(width: Int, height: Int, upscales: Bool = false) -> Resize {
        Resize(width: width, height: height, mode: .stretch, upscales: upscales)
    }

    /// As wide as that, in the image's own ratio.
    public static func width(_ width: Int, upscales: Bool = false) -> Resize {
        Resize(.width(width), upscales: upscales)
    }

    /// As high as that, in the image's own ratio.
    public static func height(_ height: Int, upscales: Bool = false) -> Resize {
        Resize(.height(height), upscales: upscales)
    }

    /// By a factor: 0.5 halves both sides.
    ///
    /// Over 1 it enlarges, as that is what it asks for.
    public static func scaled(by factor: Double) -> Resize {
        Resize(.scale(factor), upscales: factor > 1)
    }

    /// The width in pixels that is asked for, if any is.
    public var width: Int? {
        switch self.size {
        case .box(let width, _), .width(let width): width
        case .height, .scale: nil
        }
    }

    /// The height in pixels that is asked for, if any is.
    public var height: Int? {
        switch self.size {
        case .box(_, let height), .height(let height): height
        case .width, .scale: nil
        }
    }

    /// Every parameter, in a canonical text: a part of cache keys.
    public var key: String {
        var text = "resize(\(self.size),\(self.mode.rawValue),\(self.filter.rawValue)"
        if self.upscales { text += ",up" }
        // What was added later is named where it is not the default, so that older keys keep their text.
        if self.gravity != .center { text += ",gravity=\(self.gravity)" }
        if self.light != .sRGB { text += ",light=\(self.light.rawValue)" }
        return text + ")"
    }

    /// Refuses a size that makes no sense for any image.
    ///
    /// - Throws: `TransformError.Code.invalidSize` where a side is under 1 or over `Int32.max`, and
    ///   `TransformError.Code.invalidParameter` where a scale is not over 0 and finite.
    package func check() throws(TransformError) {
        let sides = 1...Int(Int32.max)
        let isSound =
            switch self.size {
            case .box(let width, let height): sides.contains(width) && sides.contains(height)
            case .width(let side), .height(let side): sides.contains(side)
            case .scale(let factor): factor.isFinite && factor > 0
            }
        guard !isSound else { return }
        if case .scale(let factor) = self.size {
            throw .invalidParameter("A picture can't be scaled by \(factor); give a factor over 0, such as 0.5.")
        }
        throw .invalidSize(
            "A picture can't be resized to \(self.size); give sides of 1 to \(sides.upperBound) pixels."
        )
    }
}

extension Resize.Size: CustomStringConvertible {
    /// As keys and messages write it: `800x600`, `800x`, `x600` or `0.5`.
    public var description: String {
        switch self {
        case .box(let width, let height): "\(width)x\(height)"
        case .width(let width): "\(width)x"
        case .height(let height): "x\(height)"
        case .scale(let factor): "\(factor)"
        }
    }
}

// MARK: - As a transformer

extension Resize: GeometricTransformer {
    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        let (width, height) = (source.width, source.height)
        let geometry = try ResizeGeometry(self, width: width, height: height)
        guard !geometry.isIdentity(width: width, height: height) else { return TransformFootprint(result: source) }
        return TransformFootprint(
            result: try PixelLayout(format: source.format, width: geometry.width, height: geometry.height),
            workingByteCount: geometry.byteCount(
                width: width,
                height: height,
                format: source.format,
                resampling: self.resampling
            )
        )
    }

    public func transform(_ image: Image) throws -> Image {
        try image.resized(self)
    }

    package func add(to geometry: inout TransformGeometry) throws(TransformError) -> Bool {
        try geometry.resize(self)
    }
}

// MARK: - As a description

extension Resize: Codable {
    private enum CodingKeys: String, CodingKey {
        case width, height, scale, mode, upscales, filter, gravity, light
    }

    /// Reads a description: `width`, `height` or both, or `scale`; what else is left out has its default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(onlyOf: CodingKeys.self)
        let width = try container.decodeIfPresent(Int.self, forKey: .width)
        let height = try container.decodeIfPresent(Int.self, forKey: .height)
        let scale = try container.decodeIfPresent(Double.self, forKey: .scale)
        let size: Size
        switch (width, height, scale) {
        case (let width?, let height?, nil): size = .box(width: width, height: height)
        case (let width?, nil, nil): size = .width(width)
        case (nil, let height?, nil): size = .height(height)
        case (nil, nil, let scale?): size = .scale(scale)
        default:
            throw DecodingError.dataCorruptedError(
                forKey: .width,
                in: container,
                debugDescription: "A resize has a width, a height or both, or else a scale."
            )
        }
        let enlarges = if case .scale(let factor) = size { factor > 1 } else { false }
        self.init(
            size,
            mode: try container.decodeIfPresent(Mode.self, forKey: .mode) ?? .fit,
            upscales: try container.decodeIfPresent(Bool.self, forKey: .upscales) ?? enlarges,
            filter: try container.decodeIfPresent(Filter.self, forKey: .filter) ?? .lanczos3,
            gravity: try container.decodeIfPresent(Gravity.self, forKey: .gravity) ?? .center,
            light: try container.decodeIfPresent(LightSpace.self, forKey: .light) ?? .sRGB
        )
    }

    /// Writes every parameter.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(self.width, forKey: .width)
        try container.encodeIfPresent(self.height, forKey: .height)
        if case .scale(let factor) = self.size { try container.encode(factor, forKey: .scale) }
        try container.encode(self.mode, forKey: .mode)
        try container.encode(self.upscales, forKey: .upscales)
        try container.encode(self.filter, forKey: .filter)
        try container.encode(self.gravity, forKey: .gravity)
        try container.encode(self.light, forKey: .light)
    }
}

// MARK: - What it is resampled with

/// The kernel, and the light in which it weighs.
package struct Resampling: Sendable, Hashable {
    package var filter = Resize.Filter.lanczos3
    package var light = LightSpace.sRGB

    package init(filter: Resize.Filter = .lanczos3, light: LightSpace = .sRGB) {
        self.filter = filter
        self.light = light
    }
}

extension Resize {
    /// The kernel, and the light in which it weighs.
    package var resampling: Resampling { Resampling(filter: self.filter, light: self.light) }
}
