// SPDX-License-Identifier: Apache-2.0

public import Tintype

/// A transformer of a program's own: the left half of an image, mirrored at its right edge.
public struct Mirror: ImageTransformer, Hashable {
    /// The part of cache keys that stands for this transform and its parameters.
    public var key: String { "mirror" }

    public init() {}

    public func transform(_ image: Image) throws -> Image {
        let layout = image.pixels.layout
        let plane = layout.planes[0]
        let pixelByteCount = plane.usedBytesPerRow / layout.width
        let pixels = try PixelBuffer(layout) { target in
            image.pixels.withBytes { source in
                for row in 0..<layout.height {
                    for column in 0..<layout.width {
                        let from = min(column, layout.width - 1 - column)
                        for byte in 0..<pixelByteCount {
                            let start = row * plane.bytesPerRow + byte
                            target.storeBytes(
                                of: source.unsafeLoad(fromByteOffset: start + from * pixelByteCount, as: UInt8.self),
                                toByteOffset: start + column * pixelByteCount,
                                as: UInt8.self
                            )
                        }
                    }
                }
            }
        }
        return Image(pixels: pixels, sourceFormat: image.sourceFormat)
    }
}
