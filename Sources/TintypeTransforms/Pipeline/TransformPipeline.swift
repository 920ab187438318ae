public import TintypeImage

/// Transforms that are carried out in their order, as one.
///
/// Crops, a resize, flips and quarter turns that follow each other are one step, which at the start of a pipeline is a
/// part of the decode; operations on single pixels that follow each other are one pass over the memory.
///
/// A description in JSON is an array with an element for each transform: an object whose only key is the
/// transform's name and whose value has its parameters. What has a default may be left out.
///
/// ```json
/// [{"crop": {"size": {"width": 800, "height": 600, "gravity": "north"}}}, {"resize": {"width": 400}}]
/// ```
public struct TransformPipeline: Sendable, Hashable {
    /// The transforms, the first one first.
    public var transforms: [ImageTransform]

    /// Joins transforms.
    public init(_ transforms: [ImageTransform]) {
        self.transforms = transforms
    }

    /// Whether there is nothing to do.
    public var isEmpty: Bool { self.transforms.isEmpty }
}

extension TransformPipeline: ExpressibleByArrayLiteral {
    /// Joins transforms.
    public init(arrayLiteral elements: ImageTransform...) {
        self.init(elements)
    }
}

extension TransformPipeline: ImageTransformer {
    /// The keys of the transforms in their order.
    public var key: String {
        // A key that holds the separator must not look like two.
        self.transforms.map { $0.key.replacing("|", with: "||") }.joined(separator: "|.|")
    }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        try TransformPlan(self, of: PixelSize(width: source.width, height: source.height))
            .footprint(for: source)
    }

    /// Carries out all transforms; the image itself where there are none.
    ///
    /// - Throws: What the transforms throw.
    public func transform(_ image: Image) throws -> Image {
        let image = try image.upright()
        let plan = try TransformPlan(self, of: PixelSize(width: image.width, height: image.height))
        // What a later transform refuses is refused before the work of those before it.
        _ = try plan.footprint(for: image.pixels.layout)
        return try plan.image(of: image)
    }
}
