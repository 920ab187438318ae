// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// Draws one colour over the whole image.
///
/// Clear pixels stay clear, except with `sourceOver` and `destinationOver`: modes that mix colours are composed like
/// `sourceAtop`. By default, with `sourceIn`, the colour replaces the image's colours and the image's alpha stays,
/// which gives an icon another colour.
public struct Tint: Hashable, PointOperation {
    /// The colour; its alpha is the strength of the tint.
    public var color: Color
    /// How the colour is combined with the image.
    public var mode: BlendMode

    /// Creates a tint; by default the colour replaces the image's colours.
    ///
    /// ```swift
    /// let icon = try Tint(Color(red: 0, green: 122, blue: 255)).transform(image)
    /// ```
    public init(_ color: Color, mode: BlendMode = .sourceIn) {
        self.color = color
        self.mode = mode
    }

    public var key: String { "tint(\(self.color.hex),\(self.mode.rawValue))" }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        try PointPass([self]).footprint(for: source)
    }

    public func transform(_ image: Image) throws -> Image {
        try PointPass([self]).transform(image)
    }

    package func steps() -> [PointStep] { [.draw(self.color, .tinting(self.mode))] }
}

extension Tint: Codable {
    private enum CodingKeys: CodingKey {
        case color, mode
    }

    /// Reads a description; the mode defaults to `sourceIn`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(onlyOf: CodingKeys.self)
        self.init(
            try container.decode(Color.self, forKey: .color),
            mode: try container.decodeIfPresent(BlendMode.self, forKey: .mode) ?? .sourceIn
        )
    }
}

/// Puts the image on a background.
///
/// An opaque background, such as the default white, gives a result without alpha. Any other background can
/// leave transparency.
public struct Flatten: Hashable, PointOperation {
    /// The colour under the image.
    public var background: Color

    /// Creates a background, white by default.
    ///
    /// ```swift
    /// let opaque = try Flatten(.black).transform(image)
    /// ```
    public init(_ background: Color = .white) {
        self.background = background
    }

    public var key: String { "flatten(\(self.background.hex))" }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        try PointPass([self]).footprint(for: source)
    }

    public func transform(_ image: Image) throws -> Image {
        try PointPass([self]).transform(image)
    }

    package func steps() -> [PointStep] { [.draw(self.background, .drawing(.destinationOver))] }
}

extension Flatten: Codable {
    private enum CodingKeys: CodingKey {
        case background
    }

    /// Reads a description; the background defaults to white.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(onlyOf: CodingKeys.self)
        self.init(try container.decodeIfPresent(Color.self, forKey: .background) ?? .white)
    }
}
