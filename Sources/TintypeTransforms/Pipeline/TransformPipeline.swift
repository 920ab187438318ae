// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// A list of transforms that run in order as one transformer.
///
/// Consecutive crops, flips, quarter turns and one resize form one step; at the start of a pipeline that step is a part
/// of the decode. Consecutive operations on single pixels run in one pass over memory.
///
/// A description in JSON is an array with one object for each transform. The object's only key is the transform's name,
/// and its value holds the parameters. Parameters that have a default may be left out.
///
/// ```json
/// [{"crop": {"size": {"width": 800, "height": 600, "gravity": "north"}}}, {"resize": {"width": 400}}]
/// ```
public struct TransformPipeline: Sendable, Hashable {
    /// The transforms, in order.
    public var transforms: [ImageTransform]

    /// Creates a pipeline of `transforms`.
    ///
    /// ```swift
    /// let pipeline = TransformPipeline([.resize(.width(800)), .sharpen()])
    /// ```
    public init(_ transforms: [ImageTransform]) {
        self.transforms = transforms
    }

    /// Whether the pipeline has no transforms.
    public var isEmpty: Bool { self.transforms.isEmpty }
}

extension TransformPipeline: ExpressibleByArrayLiteral {
    /// Creates a pipeline of the transforms in an array literal.
    public init(arrayLiteral elements: ImageTransform...) {
        self.init(elements)
    }
}

extension TransformPipeline: ImageTransformer {
    /// The keys of the transforms, in order.
    public var key: String {
        self.transforms.map { transform in
            let key = transform.key
            // Double the separator within keys, so that one key never looks like two. Most keys contain none, and bytes
            // are cheaper to search than characters.
            return key.utf8.contains(UInt8(ascii: "|")) ? key.replacing("|", with: "||") : key
        }
        .joined(separator: "|.|")
    }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        try TransformPlan(self, of: PixelSize(width: source.width, height: source.height))
            .footprint(for: source)
    }

    /// Runs all transforms; an empty pipeline returns the image itself, upright.
    ///
    /// ```swift
    /// let pipeline: TransformPipeline = [.resize(.width(800)), .adjust(.saturation(1.2))]
    /// let card = try pipeline.transform(image)
    /// ```
    ///
    /// - Throws: The errors of the transforms.
    public func transform(_ image: Image) throws -> Image {
        let image = try image.upright()
        let plan = try TransformPlan(self, of: PixelSize(width: image.width, height: image.height))
        // Check every transform before the first one runs.
        _ = try plan.footprint(for: image.pixels.layout)
        return try plan.image(of: image)
    }
}
