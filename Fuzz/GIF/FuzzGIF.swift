// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCoding
import TintypeFuzzSupport
import TintypeImage

/// Runs all code that reads GIF with one hostile file, whose bytes also determine the lengths of pieces.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let data = start.map { Data(bytes: $0, count: count) } ?? Data()
    let coder = GIFCoder()
    let limits = DecodingLimits(maximumPixels: 100_000)
    for allowsTruncated in [false, true] {
        let options = DecodeOptions(limits: limits, allowsTruncated: allowsTruncated)
        let whole = try? decode(data, coder: coder, options: options)
        let decoder = try? coder.makeIncrementalDecoder(for: .gif, options: options)
        let pieces = decoder.flatMap { try? decodePieces(data, with: $0) }
        guard let whole, let pieces else { continue }
        precondition(checksum(whole) == checksum(pieces), "pieces give another image")
    }
    return 0
}

private func decode(_ data: Data, coder: GIFCoder, options: DecodeOptions) throws -> PixelBuffer {
    let decoder = try ImageDecoder(data, registry: CoderRegistry(coders: [coder]), limits: options.limits)
    let carried = EncodeOptions.Metadata(carryingOver: try decoder.metadata())
    precondition(ImageMetadata(exif: carried.exif).position == nil, "a position was carried over")
    if let reader = try decoder.frameReader(options: options) {
        // Each frame may be as large as the limits allow.
        for index in reader.frames.indices.prefix(4) {
            guard let pixels = try? reader.pixels(of: index) else { continue }
            let frame = reader.frames[index]
            precondition(pixels.width == frame.width && pixels.height == frame.height)
            precondition(frame.left + frame.width <= reader.canvas.width)
            precondition(frame.top + frame.height <= reader.canvas.height)
            checksum(pixels)
        }
    }
    let pixels = try decoder.decodeStored(options: options).image.pixels
    precondition(pixels.width == decoder.header.pixelWidth && pixels.height == decoder.header.pixelHeight)
    return pixels
}
