// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// Replaces each pixel with a weighted mean of the pixels around it.
///
/// The border pixels repeat beyond the borders. Colours count in proportion to their alpha, so that invisible colours
/// do not bleed in.
public struct Blur: Hashable, ImageTransformer {
    /// The weights of the surrounding pixels.
    public enum Kernel: Sendable, Hashable {
        /// A Gaussian with this standard deviation in pixels, 0 to 1,000.
        case gaussian(sigma: Double)
        /// Equal weights in a square that reaches this many pixels to each side, 0 to 10,000.
        case box(radius: Int)
    }

    /// The weights of the surrounding pixels.
    public var kernel: Kernel
    /// The scale on which samples are added.
    public var light: LightSpace

    /// Creates a blur, by default on the stored samples.
    ///
    /// ```swift
    /// let blurred = try Blur(.gaussian(sigma: 8), light: .linear).transform(image)
    /// ```
    public init(_ kernel: Kernel, light: LightSpace = .sRGB) {
        self.kernel = kernel
        self.light = light
    }

    /// Returns a Gaussian blur, within one level of the exact result.
    ///
    /// A sigma under 0.2 changes nothing.
    ///
    /// ```swift
    /// request.transforms = [.blur(.gaussian(sigma: 2))]
    /// ```
    public static func gaussian(sigma: Double, light: LightSpace = .sRGB) -> Blur {
        Blur(.gaussian(sigma: sigma), light: light)
    }

    /// Returns the mean of a square: a radius of 1 means 3 by 3 pixels, and 0 changes nothing.
    ///
    /// ```swift
    /// request.transforms = [.blur(.box(radius: 3))]
    /// ```
    public static func box(radius: Int, light: LightSpace = .sRGB) -> Blur {
        Blur(.box(radius: radius), light: light)
    }

    public var key: String {
        let light = self.light == .sRGB ? "" : ",\(self.light.rawValue)"
        return switch self.kernel {
        case .gaussian(let sigma): "blur(\(sigma)\(light))"
        case .box(let radius): "blur(box,\(radius)\(light))"
        }
    }
}

extension Blur {
    private static let largestRadius = 10_000

    /// Whether the blur changes nothing.
    ///
    /// - Throws: `TransformError` if the kernel is invalid.
    private func isIdentity() throws(TransformError) -> Bool {
        switch self.kernel {
        case .gaussian(let sigma):
            try TransformError.check(sigma, in: 0...GaussianFilter.largestSigma, "A blur's sigma")
            return sigma < GaussianFilter.smallestSigma
        case .box(let radius):
            try TransformError.check(radius, in: 0...Self.largestRadius, "A blur's radius")
            return radius == 0
        }
    }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        guard try !self.isIdentity() else { return TransformFootprint(result: source) }
        let channels = source.format.channelCount
        let working =
            switch self.kernel {
            case .gaussian(let sigma) where self.isInWholeNumbers:
                GaussianFilter(sigma: sigma)
                    .workingByteCount(width: source.width, channels: channels, UInt16.self)
            case .gaussian(let sigma):
                GaussianFilter(sigma: sigma, light: self.light)
                    .workingByteCount(width: source.width, channels: channels)
            case .box(let radius): BoxFilter(radius: radius).workingByteCount(width: source.width, channels: channels)
            }
        return TransformFootprint(result: source, workingByteCount: working)
    }

    public func transform(_ image: Image) throws -> Image {
        guard try !self.isIdentity() else { return image }
        let working = WorkingRows(format: image.pixels.format, light: self.light)
        return try image.filtered { rows in
            func filtered<Number>(
                load: @escaping (UnsafePointer<UInt8>, UnsafeMutablePointer<Number>, Int) -> Void,
                store: @escaping (UnsafePointer<Number>, UnsafeMutablePointer<UInt8>, Int) -> Void
            ) -> FilteredImage<Number> {
                FilteredImage(
                    width: image.width,
                    height: image.height,
                    channels: working.channels,
                    load: { load(rows.source($0, $1.lowerBound), $2, $1.count) },
                    emit: { store($2, rows.target($0, $1.lowerBound), $1.count) }
                )
            }
            let inNumbers: FilteredImage<Float> = filtered(load: working.load, store: working.store)
            switch self.kernel {
            case .gaussian(let sigma) where self.isInWholeNumbers:
                let inWords: FilteredImage<UInt16> = filtered(load: working.load, store: working.store)
                try GaussianFilter(sigma: sigma).run(inWords)
            case .gaussian(let sigma): try GaussianFilter(sigma: sigma, light: self.light).run(inNumbers)
            case .box(let radius): try BoxFilter(radius: radius).run(inNumbers)
            }
        }
    }

    /// Whether the sums have so few terms that each may be rounded down, by less than 1/255 of a level.
    private var isInWholeNumbers: Bool {
        guard case .gaussian(let sigma) = self.kernel else { return false }
        return sigma < 6 && self.light == .sRGB
    }
}

extension Blur: Codable {
    private enum CodingKeys: CodingKey {
        case sigma, radius, light
    }

    /// Reads an object with a `sigma` or a `radius`; `light` defaults to `sRGB`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(onlyOf: CodingKeys.self)
        let sigma = try container.decodeIfPresent(Double.self, forKey: .sigma)
        let radius = try container.decodeIfPresent(Int.self, forKey: .radius)
        let light = try container.decodeIfPresent(LightSpace.self, forKey: .light) ?? .sRGB
        switch (sigma, radius) {
        case (let sigma?, nil): self = .gaussian(sigma: sigma, light: light)
        case (nil, let radius?): self = .box(radius: radius, light: light)
        default:
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: container.codingPath,
                    debugDescription: "A blur has either a sigma, for a Gaussian, or a radius, for a box."
                )
            )
        }
    }

    /// Writes an object in the form that is read.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self.kernel {
        case .gaussian(let sigma): try container.encode(sigma, forKey: .sigma)
        case .box(let radius): try container.encode(radius, forKey: .radius)
        }
        if self.light != .sRGB { try container.encode(self.light, forKey: .light) }
    }
}
