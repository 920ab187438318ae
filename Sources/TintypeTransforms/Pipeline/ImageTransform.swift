// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// One step of a pipeline: any transformer, as a value that can be compared.
///
/// Two transforms are equal if their keys are equal.
public struct ImageTransform: Sendable, Hashable, CustomStringConvertible {
    /// The transformer that makes the image.
    public let transformer: any ImageTransformer

    /// Creates a step that runs `transformer`.
    ///
    /// ```swift
    /// let transform = ImageTransform(Resize.width(800))
    /// let small = try transform.transformer.transform(image)
    /// ```
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
    ///
    /// ```swift
    /// let small = try TransformPipeline([.resize(.fit(width: 800, height: 600))]).transform(image)
    /// ```
    public static func resize(_ resize: Resize) -> ImageTransform { ImageTransform(resize) }

    /// Cuts a part out of the image.
    ///
    /// ```swift
    /// let wide = try TransformPipeline([.crop(.aspectRatio(16 / 9))]).transform(image)
    /// ```
    public static func crop(_ crop: Crop) -> ImageTransform { ImageTransform(crop) }

    /// Puts the image on a larger canvas.
    ///
    /// ```swift
    /// let square = try TransformPipeline([.pad(.aspectRatio(1, color: .white))]).transform(image)
    /// ```
    public static func pad(_ pad: Pad) -> ImageTransform { ImageTransform(pad) }

    /// Cuts off borders of one colour.
    ///
    /// ```swift
    /// let trimmed = try TransformPipeline([.trim(Trim(tolerance: 20))]).transform(image)
    /// ```
    public static func trim(_ trim: Trim) -> ImageTransform { ImageTransform(trim) }

    /// Mirrors the image.
    ///
    /// ```swift
    /// let mirrored = try TransformPipeline([.flip(.horizontal)]).transform(image)
    /// ```
    public static func flip(_ direction: Flip.Direction) -> ImageTransform { ImageTransform(Flip(direction)) }

    /// Rotates the image clockwise; by default the canvas fits the result and is transparent outside the image.
    ///
    /// ```swift
    /// let turned = try TransformPipeline([.rotate(degrees: 90)]).transform(image)
    /// ```
    public static func rotate(
        degrees: Double,
        canvas: Rotate.Canvas = .fit,
        background: Color = .clear
    ) -> ImageTransform {
        ImageTransform(Rotate(degrees: degrees, canvas: canvas, background: background))
    }

    /// Rounds the corners, and draws a border if one is given.
    ///
    /// ```swift
    /// let card = try TransformPipeline([.roundCorners(RoundCorners(radius: 24))]).transform(image)
    /// ```
    public static func roundCorners(_ corners: RoundCorners) -> ImageTransform { ImageTransform(corners) }

    /// Cuts out the largest circle in the middle; by default without a border.
    ///
    /// ```swift
    /// let avatar = try TransformPipeline([.circle(border: Border(width: 4, color: .white))]).transform(image)
    /// ```
    public static func circle(border: Border? = nil) -> ImageTransform { ImageTransform(Circle(border: border)) }

    /// Adjusts the colours.
    ///
    /// ```swift
    /// let gray = try TransformPipeline([.adjust(.grayscale)]).transform(image)
    /// ```
    public static func adjust(_ adjustment: ColorAdjustment) -> ImageTransform { ImageTransform(adjustment) }

    /// Draws a colour over the image; by default the colour replaces the image's colours and its alpha stays.
    ///
    /// ```swift
    /// let sand = Color(red: 240, green: 220, blue: 180)
    /// let warm = try TransformPipeline([.tint(sand, mode: .multiply)]).transform(image)
    /// ```
    public static func tint(_ color: Color, mode: BlendMode = .sourceIn) -> ImageTransform {
        ImageTransform(Tint(color, mode: mode))
    }

    /// Puts the image on a background colour, white by default.
    ///
    /// ```swift
    /// let opaque = try TransformPipeline([.flatten()]).transform(image)
    /// ```
    public static func flatten(_ background: Color = .white) -> ImageTransform { ImageTransform(Flatten(background)) }

    /// Blurs the image.
    ///
    /// ```swift
    /// let blurred = try TransformPipeline([.blur(.gaussian(sigma: 2))]).transform(image)
    /// ```
    public static func blur(_ blur: Blur) -> ImageTransform { ImageTransform(blur) }

    /// Sharpens the image with an unsharp mask; by default sigma and amount are 1 and the threshold is 0.
    ///
    /// ```swift
    /// let sharp = try TransformPipeline([.sharpen(Sharpen(amount: 0.6))]).transform(image)
    /// ```
    public static func sharpen(_ sharpen: Sharpen = Sharpen()) -> ImageTransform { ImageTransform(sharpen) }

    /// Replaces blocks of `size` by `size` pixels with their mean colour.
    ///
    /// ```swift
    /// let coarse = try TransformPipeline([.pixelate(size: 16)]).transform(image)
    /// ```
    public static func pixelate(size: Int) -> ImageTransform { ImageTransform(Pixelate(size: size)) }

    /// Draws an overlay on the image.
    ///
    /// ```swift
    /// let mark = Overlay(logo, placement: .tiled(gapX: 40, gapY: 40))
    /// let marked = try TransformPipeline([.overlay(mark)]).transform(image)
    /// ```
    public static func overlay(_ overlay: Overlay) -> ImageTransform { ImageTransform(overlay) }

    /// Runs a program's own transformer.
    ///
    /// ```swift
    /// let framed = try TransformPipeline([.resize(.width(800)), .custom(Vignette())]).transform(image)
    /// ```
    public static func custom(_ transformer: any ImageTransformer) -> ImageTransform { ImageTransform(transformer) }
}
