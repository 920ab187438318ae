// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// Resizes an image.
///
/// Unless ``upscales`` is set, no image is enlarged: an image smaller than the box keeps its size, except that `fill`
/// may cut it and `stretch` may shrink one side.
public struct Resize: Sendable, Hashable {
    /// The size of the result, or the part of it that is given.
    public enum Size: Sendable, Hashable {
        /// A box in pixels, at least 1 a side; ``Resize/mode`` says how the result fits it.
        case box(width: Int, height: Int)
        /// The width in pixels, at least 1; the height follows from the image's ratio.
        case width(Int)
        /// The height in pixels, at least 1; the width follows from the image's ratio.
        case height(Int)
        /// A factor for both sides: 0.5 halves each.
        case scale(Double)
    }

    /// How the result fits a box.
    ///
    /// All modes are the same if the size is one side or a scale.
    public enum Mode: String, Sendable, Hashable, Codable, CaseIterable {
        /// The largest size within the box, in the image's own ratio.
        case fit
        /// Covers the box and cuts off the rest; if the image is smaller, keeps the largest part with the box's ratio.
        case fill
        /// Like `fill`, but never enlarges, whatever ``Resize/upscales`` says; `fill-down` of imgproxy.
        case fillDown
        /// The smallest size that covers the box, in the image's own ratio; nothing is cut off.
        case cover
        /// Exactly the box; each side is scaled separately.
        case stretch
    }

    /// The filter kernels for resampling.
    ///
    /// When an image shrinks, all kernels except `nearest` are widened by the same factor.
    public enum Filter: String, Sendable, Hashable, Codable, CaseIterable {
        /// Lanczos with three lobes: the sharpest; the default.
        case lanczos3
        /// Lanczos with two lobes: less ringing than with three.
        case lanczos2
        /// Bicubic (Catmull-Rom): a little softer, less ringing.
        case bicubic
        /// The cubic of Mitchell and Netravali with B = C = 1/3: softer still, for enlarging.
        case mitchell
        /// Bilinear: soft and fast.
        case bilinear
        /// The mean of the covered area; when enlarging, nearly the nearest pixel.
        case box
        /// The nearest pixel, for pixel art.
        case nearest
    }

    /// The size of the result.
    public var size: Size
    /// How the result fits a box.
    public var mode: Mode
    /// Whether an image smaller than the size is enlarged.
    public var upscales: Bool
    /// The filter kernel for resampling.
    public var filter: Filter
    /// The part that `fill` and `fillDown` keep.
    public var gravity: Gravity
    /// The scale on which the filter adds samples.
    public var light: LightSpace

    /// Creates a resize; by default it fits the box without enlarging, and filters stored samples with Lanczos.
    ///
    /// ```swift
    /// let half = try Resize(.scale(0.5), filter: .box, light: .linear).transform(image)
    /// ```
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

    /// Creates a resize to a box of `width` by `height` pixels, with the same defaults.
    ///
    /// ```swift
    /// let cover = try Resize(width: 800, height: 600, mode: .fill, gravity: .north).transform(image)
    /// ```
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

    /// Returns a resize to the largest size within the box, in the image's own ratio.
    ///
    /// ```swift
    /// request.transforms = [.resize(.fit(width: 800, height: 600))]  // 1,600 x 900 becomes 800 x 450
    /// ```
    public static func fit(width: Int, height: Int, upscales: Bool = false) -> Resize {
        Resize(width: width, height: height, mode: .fit, upscales: upscales)
    }

    /// Returns a resize that covers the box and cuts off the rest, on both sides alike by default.
    ///
    /// ```swift
    /// request.transforms = [.resize(.fill(width: 800, height: 600))]  // 1,600 x 900 becomes 800 x 600
    /// ```
    public static func fill(
        width: Int,
        height: Int,
        upscales: Bool = false,
        gravity: Gravity = .center
    ) -> Resize {
        Resize(width: width, height: height, mode: .fill, upscales: upscales, gravity: gravity)
    }

    /// Returns a resize that covers the box or keeps the largest part with the box's ratio, and never enlarges.
    ///
    /// ```swift
    /// request.transforms = [.resize(.fillDown(width: 800, height: 600))]  // 400 x 400 becomes 400 x 300
    /// ```
    public static func fillDown(width: Int, height: Int, gravity: Gravity = .center) -> Resize {
        Resize(width: width, height: height, mode: .fillDown, gravity: gravity)
    }

    /// Returns a resize to exactly the box; each side is scaled separately.
    ///
    /// ```swift
    /// request.transforms = [.resize(.stretch(width: 800, height: 600))]  // 1,600 x 900 becomes 800 x 600
    /// ```
    public static func stretch(width: Int, height: Int, upscales: Bool = false) -> Resize {
        Resize(width: width, height: height, mode: .stretch, upscales: upscales)
    }

    /// Returns a resize to a width in pixels, in the image's own ratio.
    ///
    /// ```swift
    /// request.transforms = [.resize(.width(800))]  // 1,600 x 900 becomes 800 x 450
    /// ```
    public static func width(_ width: Int, upscales: Bool = false) -> Resize {
        Resize(.width(width), upscales: upscales)
    }

    /// Returns a resize to a height in pixels, in the image's own ratio.
    ///
    /// ```swift
    /// request.transforms = [.resize(.height(450, upscales: true))]  // 160 x 90 becomes 800 x 450
    /// ```
    public static func height(_ height: Int, upscales: Bool = false) -> Resize {
        Resize(.height(height), upscales: upscales)
    }

    /// Returns a resize by a factor: 0.5 halves both sides, and a factor over 1 enlarges.
    ///
    /// ```swift
    /// request.transforms = [.resize(.scaled(by: 0.5))]  // 1,600 x 900 becomes 800 x 450
    /// ```
    public static func scaled(by factor: Double) -> Resize {
        Resize(.scale(factor), upscales: factor > 1)
    }

    /// The requested width in pixels; `nil` if the size does not give one.
    public var width: Int? {
        switch self.size {
        case .box(let width, _), .width(let width): width
        case .height, .scale: nil
        }
    }

    /// The requested height in pixels; `nil` if the size does not give one.
    public var height: Int? {
        switch self.size {
        case .box(_, let height), .height(let height): height
        case .width, .scale: nil
        }
    }

    /// Every parameter as canonical text, a part of cache keys.
    public var key: String {
        var text = "resize(\(self.size),\(self.mode.rawValue),\(self.filter.rawValue)"
        if self.upscales { text += ",up" }
        // Newer parameters appear only if they differ from their defaults, so that older keys stay valid.
        if self.gravity != .center { text += ",gravity=\(self.gravity)" }
        if self.light != .sRGB { text += ",light=\(self.light.rawValue)" }
        return text + ")"
    }

    /// Checks that the size is valid for some image.
    ///
    /// - Throws: `TransformError.Code.invalidSize` if a side is under 1 or over `Int32.max`, and
    ///   `TransformError.Code.invalidParameter` if a scale is not finite and over 0.
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
            throw .invalidParameter("An image cannot be scaled by \(factor); give a factor over 0, such as 0.5.")
        }
        throw .invalidSize(
            "An image cannot be resized to \(self.size); give sides of 1 to \(sides.upperBound) pixels."
        )
    }
}

extension Resize.Size: CustomStringConvertible {
    /// The form in keys and messages: `800x600`, `800x`, `x600` or `0.5`.
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

    /// Reads a description with `width`, `height` or both, or with `scale`; the other parameters have defaults.
    ///
    /// `upscales` defaults to whether the scale is over 1.
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

/// The filter kernel and the light space of a resampling.
package struct Resampling: Sendable, Hashable {
    package var filter = Resize.Filter.lanczos3
    package var light = LightSpace.sRGB

    package init(filter: Resize.Filter = .lanczos3, light: LightSpace = .sRGB) {
        self.filter = filter
        self.light = light
    }
}

extension Resize {
    /// The filter kernel and the light space.
    package var resampling: Resampling { Resampling(filter: self.filter, light: self.light) }
}
