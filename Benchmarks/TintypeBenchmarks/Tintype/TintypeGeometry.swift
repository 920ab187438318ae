// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCoding
import TintypeImage
import TintypeTransforms

/// Tintype's side of moving pixels: the transformer, on one decode lane.
enum TintypeGeometry {
    /// Transforms the image in the file at `path`, which is decoded once beforehand.
    static func contestant(_ job: Geometry.Job, _ path: String) throws -> Contestant {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let decoded = try ImageDecoder(data, registry: CoderRegistry()).decode()
        let image = job.hasAlpha ? try self.withAlpha(decoded) : decoded
        let lanes = DecodeLanes(count: 1)
        return Contestant(note: "one decode lane") { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let result = try await lanes.run { try job.transformer.transform(image) }
                    try Check.size(result.width, result.height, is: job.size)
                }
            }
        }
    }

    /// Returns the image with alpha that increases from clear at the top to opaque at the bottom.
    private static func withAlpha(_ image: Image) throws -> Image {
        let layout = try PixelLayout(format: .rgba8, width: image.width, height: image.height)
        let (from, to) = (image.pixels.layout.planes[0], layout.planes[0])
        let pixels = try image.pixels.withBytes { source in
            try PixelBuffer(
                layout,
                filling: { target in
                    for row in 0..<to.height {
                        let alpha = UInt8(row * 256 / to.height)
                        for column in 0..<to.width {
                            let place = row * to.bytesPerRow + column * 4
                            for channel in 0..<3 {
                                let sample = source.unsafeLoad(
                                    fromByteOffset: row * from.bytesPerRow + column * 3 + channel,
                                    as: UInt8.self
                                )
                                target.storeBytes(of: sample, toByteOffset: place + channel, as: UInt8.self)
                            }
                            target.storeBytes(of: alpha, toByteOffset: place + 3, as: UInt8.self)
                        }
                    }
                }
            )
        }
        return image.replacingPixels(pixels, orientation: .up)
    }
}
