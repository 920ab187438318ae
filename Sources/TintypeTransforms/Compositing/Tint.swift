public import TintypeImage

/// Draws one colour over the whole image.
///
/// What is clear stays clear, but for `sourceOver` and `destinationOver`: the modes that mix colours are composed as
/// `sourceAtop`. By default, which is `sourceIn`, what is drawn takes the colour and its own alpha stays: an icon in
/// another colour.
public struct Tint: Hashable, PointOperation {
    /// The colour; its alpha says how much of it is drawn.
    public var color: Color
    /// How it goes together with the image.
    public var mode: BlendMode

    /// Describes a tint.
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

    /// Reads a description; the mode may be left out.
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
/// On an opaque colour, white by default, the result has no alpha; on another it keeps what is left.
public struct Flatten: Hashable, PointOperation {
    /// The colour under the image.
    public var background: Color

    /// Describes a background.
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

    /// Reads a description; the background may be left out.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(onlyOf: CodingKeys.self)
        self.init(try container.decodeIfPresent(Color.self, forKey: .background) ?? .white)
    }
}
