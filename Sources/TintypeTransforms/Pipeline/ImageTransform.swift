public import TintypeImage

/// One step of a pipeline: any transformer, as a value that can be compared.
///
/// Two are equal where their keys are.
public struct ImageTransform: Sendable, Hashable, CustomStringConvertible {
    /// What makes the image.
    public let transformer: any ImageTransformer

    /// A step that `transformer` carries out.
    public init(_ transformer: any ImageTransformer) {
        self.transformer = transformer
    }

    /// Names the transformer and its parameters; that of a program's own can't be taken for one of the library's.
    public var key: String {
        let isOwn = !(self.transformer is TransformPipeline) && !TransformKinds.has(self.transformer)
        return isOwn ? "own(\(self.transformer.key))" : self.transformer.key
    }

    public var description: String { self.key }

    public static func == (left: ImageTransform, right: ImageTransform) -> Bool {
        left.key == right.key
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.key)
    }
}

extension ImageTransform {
    /// Brings the image to a size.
    public static func resize(_ resize: Resize) -> ImageTransform { ImageTransform(resize) }

    /// Cuts a part out of the image.
    public static func crop(_ crop: Crop) -> ImageTransform { ImageTransform(crop) }

    /// Lays the image on a larger canvas.
    public static func pad(_ pad: Pad) -> ImageTransform { ImageTransform(pad) }

    /// Takes borders of one colour away.
    public static func trim(_ trim: Trim) -> ImageTransform { ImageTransform(trim) }

    /// Mirrors the image.
    public static func flip(_ direction: Flip.Direction) -> ImageTransform { ImageTransform(Flip(direction)) }

    /// Turns the image clockwise.
    public static func rotate(
        degrees: Double,
        canvas: Rotate.Canvas = .fit,
        background: Color = .clear
    ) -> ImageTransform {
        ImageTransform(Rotate(degrees: degrees, canvas: canvas, background: background))
    }

    /// Rounds the corners.
    public static func roundCorners(_ corners: RoundCorners) -> ImageTransform { ImageTransform(corners) }

    /// Cuts out the largest circle.
    public static func circle(border: Border? = nil) -> ImageTransform { ImageTransform(Circle(border: border)) }

    /// Changes the colours.
    public static func adjust(_ adjustment: ColorAdjustment) -> ImageTransform { ImageTransform(adjustment) }

    /// Lays a colour over the image.
    public static func tint(_ color: Color, mode: BlendMode = .sourceIn) -> ImageTransform {
        ImageTransform(Tint(color, mode: mode))
    }

    /// Lays the image over a colour, so that it has no transparency.
    public static func flatten(_ background: Color = .white) -> ImageTransform { ImageTransform(Flatten(background)) }

    /// Blurs the image.
    public static func blur(_ blur: Blur) -> ImageTransform { ImageTransform(blur) }

    /// Sharpens the image.
    public static func sharpen(_ sharpen: Sharpen = Sharpen()) -> ImageTransform { ImageTransform(sharpen) }

    /// Makes blocks of `size` by `size` pixels.
    public static func pixelate(size: Int) -> ImageTransform { ImageTransform(Pixelate(size: size)) }

    /// Draws an overlay on the image.
    public static func overlay(_ overlay: Overlay) -> ImageTransform { ImageTransform(overlay) }

    /// What a program's own transformer does.
    public static func custom(_ transformer: any ImageTransformer) -> ImageTransform { ImageTransform(transformer) }
}
