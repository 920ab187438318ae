// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeCoding
public import TintypeImage

/// Feeds `data` to `decoder` in pieces whose sizes the data decides, with previews in between.
public func decodePieces(_ data: Data, with decoder: any IncrementalDecoder) throws -> PixelBuffer {
    var offset = 0
    var round = 0
    while offset < data.count {
        let size = max(1, Int(data[offset]) << (round % 4))
        let end = min(data.count, offset + size)
        try decoder.append(data[offset..<end])
        if round % 8 == 7, let preview = try decoder.preview() { _ = checksum(preview.pixels) }
        offset = end
        round += 1
    }
    return try decoder.finish().image.pixels
}

/// Reads every sample.
@discardableResult
public func checksum(_ pixels: PixelBuffer) -> UInt64 {
    let plane = pixels.layout.planes[0]
    return pixels.withBytes { bytes in
        var sum: UInt64 = 0
        for row in 0..<plane.height {
            for offset in row * plane.bytesPerRow..<row * plane.bytesPerRow + plane.usedBytesPerRow {
                sum = sum &* 31 &+ UInt64(bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
            }
        }
        return sum
    }
}
