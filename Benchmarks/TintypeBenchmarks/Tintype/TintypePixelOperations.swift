// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCoding
import TintypeImage
import TintypeTransforms

/// Tintype's side of filters, adjustments and compositing: the transformer, on one decode lane.
enum TintypePixelOperations {
    /// Transforms the image in the file at `path`, which is decoded once beforehand.
    static func contestant(_ job: PixelOperations.Job, _ path: String) throws -> Contestant {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let decoded = try ImageDecoder(data, registry: CoderRegistry()).decode()
        let image = job.hasAlpha ? try self.fading(decoded) { $1 } : decoded
        let transformer = try job.transformer(decoded)
        let lanes = DecodeLanes(count: 1)
        return Contestant(note: "one decode lane") { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let result = try await lanes.run { try transformer.transform(image) }
                    try Check.size(result.width, result.height, is: (image.width, image.height))
                }
            }
        }
    }

    /// Returns the overlay for an image: the image itself, from clear on the left to opaque on the right.
    static func drawn(on image: Image) throws -> Image {
        try self.fading(image) { column, _ in column }
    }

    /// Returns an image with alpha from 0 to 1.
    ///
    /// `share` computes alpha from the column's and the row's share of the size.
    private static func fading(
        _ image: Image,
        _ share: (_ column: Double, _ row: Double) -> Double
    ) throws -> Image {
        let layout = try PixelLayout(format: .rgba8, width: image.width, height: image.height)
        let veil = try PixelBuffer(
            layout,
            filling: { bytes in
                for row in 0..<layout.height {
                    for column in 0..<layout.width {
                        let alpha = share(
                            Double(column) / Double(layout.width),
                            Double(row) / Double(layout.height)
                        )
                        bytes.storeBytes(
                            of: UInt8(alpha * 256),
                            toByteOffset: row * layout.planes[0].bytesPerRow + column * 4 + 3,
                            as: UInt8.self
                        )
                    }
                }
            }
        )
        return try Overlay(image, name: "", mode: .sourceIn).transform(Image(pixels: veil))
    }
}
