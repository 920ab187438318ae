public import TintypeImage

/// One step of a pipeline: any transformer, as a value that can be compared.
///
/// Two transforms are equal if their keys are equal.
public struct ImageTransform: Sendable, Hashable, CustomStringConvertible {
    /// The transformer that makes the image.
    public let transformer: any ImageTransformer

    /// Creates a step that runs `transformer`.
    public init(_ transformer: any ImageTransformer) {
        self.transformer = transformer
    }

    /// The key of the transformer, marked if it is a program's own, so that no such key equals one of the library's.
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
    /// Resizes the image.
    public static func resize(_ resize: Resize) -> ImageTransform { ImageTransform(resize) }

    /// Cuts a part out of the image.
    public static func crop(_ crop: Crop) -> ImageTransform { ImageTransform(crop) }

    /// Puts the image on a larger canvas.
    public static func pad(_ pad: Pad) -> ImageTransform { ImageTransform(pad) }

    /// Cuts off borders of one colour.
    public static func trim(_ trim: Trim) -> ImageTransform { ImageTransform(trim) }

    /// Mirrors the image.
    public static func flip(_ direction: Flip.Direction) -> ImageTransform { ImageTransform(Flip(direction)) }

    /// Rotates the image clockwise; by default the canvas fits the result and is transparent outside the image.
    public static func rotate(
        degrees: Double,
        canvas: Rotate.Canvas = .fit,
        background: Color = .clear
    ) -> ImageTransform {
        ImageTransform(Rotate(degrees: degrees, canvas: canvas, background: background))
    }

    /// Rounds the corners, and draws a border if one is given.
    public static func roundCorners(_ corners: RoundCorners) -> ImageTransform { ImageTransform(corners) }

    /// Cuts out the largest circle in the middle; by default without a border.
    public static func circle(border: Border? = nil) -> ImageTransform { ImageTransform(Circle(border: border)) }

    /// Adjusts the colours.
    public static func adjust(_ adjustment: ColorAdjustment) -> ImageTransform { ImageTransform(adjustment) }

    /// Draws a colour over the image; by default the colour replaces the image's colours and its alpha stays.
    public static func tint(_ color: Color, mode: BlendMode = .sourceIn) -> ImageTransform {
        ImageTransform(Tint(color, mode: mode))
    }

    /// Puts the image on a background colour, white by default.
    public static func flatten(_ background: Color = .white) -> ImageTransform { ImageTransform(Flatten(background)) }

    /// Blurs the image.
    public static func blur(_ blur: Blur) -> ImageTransform { ImageTransform(blur) }

    /// Sharpens the image with an unsharp mask; by default sigma and amount are 1 and the threshold is 0.
    public static func sharpen(_ sharpen: Sharpen = Sharpen()) -> ImageTransform { ImageTransform(sharpen) }

    /// Replaces blocks of `size` by `size` pixels with their mean colour.
    public static func pixelate(size: Int) -> ImageTransform { ImageTransform(Pixelate(size: size)) }

    /// Draws an overlay on the image.
    public static func overlay(_ overlay: Overlay) -> ImageTransform { ImageTransform(overlay) }

    /// Runs a program's own transformer.
    public static func custom(_ transformer: any ImageTransformer) -> ImageTransform { ImageTransform(transformer) }
}
