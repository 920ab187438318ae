// SPDX-License-Identifier: Apache-2.0

import Tintype

/// Compares images.
enum Pixels {
    /// Returns the samples of all rows, without padding.
    static func bytes(of image: Image) -> [UInt8] {
        let buffer = image.pixels
        let plane = buffer.layout.planes[0]
        let length = buffer.width * buffer.format.channelCount
        return buffer.withBytes { bytes in
            (0..<buffer.height).flatMap { row in
                (0..<length).map { bytes.unsafeLoad(fromByteOffset: row * plane.bytesPerRow + $0, as: UInt8.self) }
            }
        }
    }

    /// Whether an image is the hostile origin's honest response for `number`.
    static func isHonest(_ image: Image, _ number: Int) -> Bool {
        guard image.width == 16, image.height == 16 else { return false }
        let color = [UInt8(number >> 16 & 0xFF), UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)]
        let bytes = Self.bytes(of: image)
        let size = image.pixels.format.channelCount
        return stride(from: 0, to: bytes.count, by: size).allSatisfy { Array(bytes[$0..<$0 + 3]) == color }
    }
}
