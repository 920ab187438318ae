public import TintypeImage

/// Makes an image of another: what all transforms have in common, and what a program's own conform to.
///
/// A transformer is a value that names all its parameters. It runs on a decode lane, within the memory gate, and may be
/// run by several lanes at once. It is given upright images in sRGB with straight alpha, unless the load keeps another
/// colour profile.
public protocol ImageTransformer: Sendable {
    /// The transformer's name and every parameter that changes a pixel, as a canonical text: a part of cache keys.
    ///
    /// Equal keys must mean equal images: they are stored on disk, and outlive the program. It has no line breaks.
    var key: String { get }

    /// What it makes of an image that lies like `source`, and what memory it takes for that.
    ///
    /// Asked before any pixel exists: the memory gate admits a load by this, and a result that is over the decoding
    /// limits is refused. By default the result lies like the source, and takes no memory besides.
    ///
    /// - Throws: `TransformError` where the parameters make no sense, or not for such an image.
    func footprint(for source: PixelLayout) throws -> TransformFootprint

    /// Makes the image.
    ///
    /// Work that takes long looks at `Task.isCancelled` at least every few milliseconds.
    ///
    /// - Throws: `TransformError`, `ImageError`, `CancellationError`, or what a program's own transformer throws.
    func transform(_ image: Image) throws -> Image
}

extension ImageTransformer {
    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        TransformFootprint(result: source)
    }
}

/// What a transformer makes of an image, and what memory that takes.
public struct TransformFootprint: Sendable, Hashable {
    /// How the result lies in memory; where that depends on the pixels, the largest that it may be.
    public var result: PixelLayout
    /// The bytes that are taken besides the source and the result, at most at once.
    public var workingByteCount: Int

    /// Describes a result, by default one that takes no memory besides.
    public init(result: PixelLayout, workingByteCount: Int = 0) {
        self.result = result
        self.workingByteCount = workingByteCount
    }
}

/// How samples are weighed against each other where several make one.
public enum LightSpace: String, Sendable, Hashable, Codable, CaseIterable {
    /// As they are stored, in the curve of sRGB: what most programs do.
    case sRGB
    /// By the light that they stand for: fine detail keeps its brightness. Takes longer.
    case linear
}
