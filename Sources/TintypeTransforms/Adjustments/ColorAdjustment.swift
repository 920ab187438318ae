// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// Changes each pixel's colour by one number, as the filter functions of CSS do.
///
/// In a description, an adjustment is an object of its name and its number: `{"brightness": 1.2}`. The formulas are
/// those in Filter Effects Module Level 1, applied to the stored sRGB values with straight alpha, so that the image
/// looks as it would in a browser. ``gamma(_:)`` is not in CSS. Consecutive adjustments run as one operation: values
/// are clamped and rounded only at the end.
public struct ColorAdjustment: Hashable {
    /// The property that an adjustment changes.
    public enum Property: String, Sendable, Hashable, Codable, CaseIterable {
        /// Multiplies the colours by the amount, 0 to 100: 0 is black, 1 changes nothing.
        case brightness
        /// Multiplies the distance to middle gray by the amount, 0 to 100: 0 is gray, 1 changes nothing.
        case contrast
        /// Multiplies the distance to the pixel's gray by the amount, 0 to 100: 0 is gray, 1 changes nothing.
        case saturation
        /// Raises the colours to the power of 1 / amount, 0.01 to 100: over 1 brightens, as in ImageMagick's `-gamma`.
        case gamma
        /// Rotates the hue by the amount, in degrees from -1,000,000 to 1,000,000, on a plane of equal luma.
        case hue
        /// Moves the colours towards their luma of ITU-R BT.709 by the amount, 0 to 1.
        ///
        /// At 1, an opaque image gets a format of one sample a pixel, unless it keeps a colour profile.
        case grayscale
        /// Moves the colours towards their opposites by the amount, 0 to 1: 0.5 is gray.
        case invert
        /// Moves the colours towards the brown of old photographs by the amount, 0 to 1.
        case sepia

        fileprivate var range: ClosedRange<Double> {
            switch self {
            case .brightness, .contrast, .saturation: 0...100
            case .gamma: 0.01...100
            case .hue: -1e6...1e6
            case .grayscale, .invert, .sepia: 0...1
            }
        }
    }

    /// The property to change.
    public var property: Property
    /// The amount of the change; see ``Property`` for its meaning and range.
    public var amount: Double

    /// Creates an adjustment of `property` by `amount`.
    ///
    /// ```swift
    /// let faded = try ColorAdjustment(.sepia, 0.4).transform(image)
    /// ```
    public init(_ property: Property, _ amount: Double) {
        self.property = property
        self.amount = amount
    }

    /// Multiplies the colours by `factor`, 0 to 100; 1 changes nothing.
    ///
    /// ```swift
    /// request.transforms = [.adjust(.brightness(1.2))]
    /// ```
    public static func brightness(_ factor: Double) -> ColorAdjustment { ColorAdjustment(.brightness, factor) }
    /// Multiplies the distance to middle gray by `factor`, 0 to 100; 1 changes nothing.
    ///
    /// ```swift
    /// request.transforms = [.adjust(.contrast(1.1))]
    /// ```
    public static func contrast(_ factor: Double) -> ColorAdjustment { ColorAdjustment(.contrast, factor) }
    /// Multiplies the distance to the pixel's gray by `factor`, 0 to 100; 1 changes nothing.
    ///
    /// ```swift
    /// request.transforms = [.adjust(.saturation(0.5))]
    /// ```
    public static func saturation(_ factor: Double) -> ColorAdjustment { ColorAdjustment(.saturation, factor) }
    /// Raises the colours to the power of 1 / `gamma`, 0.01 to 100; over 1 brightens.
    ///
    /// ```swift
    /// request.transforms = [.adjust(.gamma(1.4))]
    /// ```
    public static func gamma(_ gamma: Double) -> ColorAdjustment { ColorAdjustment(.gamma, gamma) }
    /// Rotates the hue by `degrees`.
    ///
    /// ```swift
    /// request.transforms = [.adjust(.hue(degrees: 90))]
    /// ```
    public static func hue(degrees: Double) -> ColorAdjustment { ColorAdjustment(.hue, degrees) }
    /// Replaces the colours with their luma.
    public static let grayscale = ColorAdjustment(.grayscale, 1)
    /// Replaces the colours with their opposites.
    public static let invert = ColorAdjustment(.invert, 1)
    /// Tones the image in the brown of old photographs.
    public static let sepia = ColorAdjustment(.sepia, 1)
}

extension ColorAdjustment: PointOperation {
    public var key: String { "\(self.property.rawValue)(\(self.amount))" }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        try PointPass([self]).footprint(for: source)
    }

    public func transform(_ image: Image) throws -> Image {
        try PointPass([self]).transform(image)
    }

    package func steps() throws(TransformError) -> [PointStep] {
        try TransformError.check(self.amount, in: self.property.range, self.property.rawValue)
        switch self.property {
        case .brightness: return [.matrix(ColorMatrix(slope: self.amount))]
        case .contrast: return [.matrix(ColorMatrix(slope: self.amount, intercept: 0.5 - 0.5 * self.amount))]
        case .saturation: return [.matrix(.saturation(self.amount))]
        case .gamma: return [.power(1 / self.amount)]
        case .hue: return [.matrix(.hueRotation(degrees: self.amount))]
        case .grayscale: return [.matrix(ColorMatrix(towards: .grayscale, share: self.amount))]
        case .invert: return [.matrix(ColorMatrix(slope: 1 - 2 * self.amount, intercept: self.amount))]
        case .sepia: return [.matrix(ColorMatrix(towards: .sepia, share: self.amount))]
        }
    }
}

extension ColorAdjustment: Codable {
    /// Reads an object of one member, such as `{"brightness": 1.2}`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: PropertyKey.self)
        guard let key = container.allKeys.first, container.allKeys.count == 1 else {
            let known = Property.allCases.map(\.rawValue).joined(separator: ", ")
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath,
                    debugDescription: "An adjustment has one of these and a number: \(known)."
                )
            )
        }
        self.init(key.property, try container.decode(Double.self, forKey: key))
    }

    /// Writes an object of one member.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: PropertyKey.self)
        try container.encode(self.amount, forKey: PropertyKey(property: self.property))
    }

    private struct PropertyKey: CodingKey {
        let property: Property

        init(property: Property) {
            self.property = property
        }

        init?(stringValue: String) {
            guard let property = Property(rawValue: stringValue) else { return nil }
            self.property = property
        }

        var stringValue: String { self.property.rawValue }

        init?(intValue: Int) { nil }

        var intValue: Int? { nil }
    }
}
