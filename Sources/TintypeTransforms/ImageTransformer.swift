// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// A transform that makes one image from another; programs can conform their own types to it.
///
/// A transformer is a value that holds all its parameters. It runs on a decode lane within the memory gate, and several
/// lanes may run it at once. It receives upright images in sRGB with straight alpha, unless the load keeps another
/// colour profile.
///
/// ```swift
/// struct Watercolor: ImageTransformer {
///     var sigma: Double
///     var key: String { "watercolor(\(self.sigma))" }
///
///     func transform(_ image: Image) throws -> Image {
///         try TransformPipeline([.blur(.gaussian(sigma: self.sigma)), .adjust(.saturation(1.4))]).transform(image)
///     }
/// }
/// ```
public protocol ImageTransformer: Sendable {
    /// The name of the transformer and every parameter that changes a pixel, as canonical text without line breaks.
    ///
    /// The key is a part of cache keys. Equal keys must mean equal images: cache entries on disk outlive the program.
    var key: String { get }

    /// Returns the layout of the result for an image of the layout `source`, and the memory that the transform needs.
    ///
    /// The library calls this before any pixel exists. The memory gate admits a load by the footprint, and a result
    /// over the decoding limits is refused. By default the result has the layout of the source and needs no other
    /// memory.
    ///
    /// - Throws: `TransformError` if a parameter is invalid, or invalid for such an image.
    func footprint(for source: PixelLayout) throws -> TransformFootprint

    /// Returns the transformed image.
    ///
    /// A long transform must check `Task.isCancelled` at least every few milliseconds.
    ///
    /// - Throws: `TransformError`, `ImageError`, `CancellationError`, or any error of a program's own transformer.
    func transform(_ image: Image) throws -> Image
}

extension ImageTransformer {
    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        TransformFootprint(result: source)
    }
}

/// The layout of a transform's result, and the memory that the transform needs.
public struct TransformFootprint: Sendable, Hashable {
    /// The layout of the result; if it depends on the pixels, the largest possible one.
    public var result: PixelLayout
    /// The most bytes in use at once in addition to the source and the result.
    public var workingByteCount: Int

    /// Creates a footprint; by default the transform needs no memory in addition to source and result.
    ///
    /// ```swift
    /// let layout = try PixelLayout(format: .rgb8, width: 800, height: 600)
    /// let footprint = TransformFootprint(result: layout, workingByteCount: layout.byteCount)
    /// ```
    public init(result: PixelLayout, workingByteCount: Int = 0) {
        self.result = result
        self.workingByteCount = workingByteCount
    }
}

/// The scale on which a filter adds samples.
public enum LightSpace: String, Sendable, Hashable, Codable, CaseIterable {
    /// As stored, in the curve of sRGB; most programs do this.
    case sRGB
    /// In proportion to light, so that fine detail keeps its brightness; slower.
    case linear
}
