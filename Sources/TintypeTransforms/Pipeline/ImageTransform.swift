public import TintypeImage

/// One step of a pipeline: any transformer, as a value that can be compared.
///
/// Two are equal where their keys are.
public struct ImageTransform: Sendable, Hashable, CustomStringConvertible {
    /// What makes the picture.
    public let transformer: any ImageTransformer

    /// A step that `transformer` carries out.
    public init(_ transformer: any ImageTransformer) {
        self.transformer = transformer
    }

    /// Names the transformer and its parameters.
    public var key: String { self.transformer.key }

    public var description: String { self.key }

    public static func == (left: ImageTransform, right: ImageTransform) -> Bool {
        left.key == right.key
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.key)
    }
}

extension ImageTransform {
    /// Brings the picture to a size.
    public static func resize(_ resize: Resize) -> ImageTransform { ImageTransform(resize) }

    /// Cuts a part out of the picture.
    public static func crop(_ crop: Crop) -> ImageTransform { ImageTransform(crop) }

    /// Lays the picture on a larger canvas.
    public static func pad(_ pad: Pad) -> ImageTransform { ImageTransform(pad) }

    /// Mirrors the picture.
    public static func flip(_ direction: Flip.Direction) -> ImageTransform { ImageTransform(Flip(direction)) }

    /// Turns the picture clockwise.
    public static func rotate(
        degrees: Double,
        canvas: Rotate.Canvas = .fit,
        background: Color = .clear
    ) -> ImageTransform {
        ImageTransform(Rotate(degrees: degrees, canvas: canvas, background: background))
    }

    /// What a program's own transformer does.
    public static func custom(_ transformer: any ImageTransformer) -> ImageTransform { ImageTransform(transformer) }
}
