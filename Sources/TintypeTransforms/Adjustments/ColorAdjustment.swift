public import TintypeImage

/// Changes every pixel by its own colour alone, by one number, as the filter functions of CSS do.
///
/// A description is the name and the number: `{"brightness": 1.2}`. The formulas are those of the Filter Effects Module
/// Level 1, on the stored sRGB values with straight alpha, so that an image looks as it would in a browser. ``gamma(_:)`` is
/// not in CSS. Adjustments that follow each other are carried out together: what is over white or under black in
/// between is cut off only at the end, and nothing is rounded before.
public struct ColorAdjustment: Hashable {
    /// What is changed.
    public enum Property: String, Sendable, Hashable, Codable, CaseIterable {
        /// The colours times the amount: 0 is black, 1 changes nothing, at most 100.
        case brightness
        /// The distance of the colours to middle gray times the amount: 0 is gray, 1 changes nothing, at most 100.
        case contrast
        /// The distance of the colours to gray times the amount: 0 is gray, 1 changes nothing, at most 100.
        case saturation
        /// The colours to the power of 1 by the amount, 0.01 to 100: over 1 brightens, as in ImageMagick's `-gamma`.
        case gamma
        /// The hue turned by the amount, in degrees, on a plane of equal luma.
        case hue
        /// How far the colours are taken to their luma of ITU-R BT.709, 0 to 1. With 1 an opaque image becomes one of
        /// one sample a pixel, unless it keeps a colour profile.
        case grayscale
        /// How far the colours are taken to their opposites, 0 to 1: half of it is gray.
        case invert
        /// How far the colours are taken to the brown of old photographs, 0 to 1.
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

    /// What is changed.
    public var property: Property
    /// How much; ``Property`` says what it means.
    public var amount: Double

    /// Describes a change.
    public init(_ property: Property, _ amount: Double) {
        self.property = property
        self.amount = amount
    }

    /// The colours times `factor`: 1 changes nothing.
    public static func brightness(_ factor: Double) -> ColorAdjustment { ColorAdjustment(.brightness, factor) }
    /// The distance of the colours to middle gray times `factor`: 1 changes nothing.
    public static func contrast(_ factor: Double) -> ColorAdjustment { ColorAdjustment(.contrast, factor) }
    /// The distance of the colours to gray times `factor`: 1 changes nothing.
    public static func saturation(_ factor: Double) -> ColorAdjustment { ColorAdjustment(.saturation, factor) }
    /// The colours to the power of 1 by `gamma`: over 1 brightens.
    public static func gamma(_ gamma: Double) -> ColorAdjustment { ColorAdjustment(.gamma, gamma) }
    /// The hue turned by `degrees`.
    public static func hue(degrees: Double) -> ColorAdjustment { ColorAdjustment(.hue, degrees) }
    /// Luma instead of colours.
    public static let grayscale = ColorAdjustment(.grayscale, 1)
    /// The opposites of the colours.
    public static let invert = ColorAdjustment(.invert, 1)
    /// The brown of old photographs.
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
