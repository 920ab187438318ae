// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCoding
import TintypeFuzzSupport
import TintypeImage

/// Runs all code that reads WebP with one hostile file, whose bytes also determine the lengths of pieces.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let data = start.map { Data(bytes: $0, count: count) } ?? Data()
    let limits = DecodingLimits(maximumPixels: 250_000)
    for allowsTruncated in [false, true] {
        var options = DecodeOptions(limits: limits, allowsTruncated: allowsTruncated)
        let whole = try? decode(data, options)
        let rows = try? decodeRows(data, options)
        let pieces = try? decodePieces(data, options)
        if let whole, let rows { precondition(checksum(whole) == rows, "rows give another image") }
        if !allowsTruncated, let whole {
            precondition(pieces.map { checksum($0) } == checksum(whole), "pieces give another image")
        }
        options.sufficientSize = PixelSize(width: 20, height: 20)
        _ = try? decode(data, options)
        _ = try? decodeRows(data, options)
        _ = try? decodePieces(data, options)
    }
    return 0
}

private func decode(_ data: Data, _ options: DecodeOptions) throws -> PixelBuffer {
    let coder = WebPCoder()
    let decoder = try ImageDecoder(data, registry: CoderRegistry(coders: [coder]), limits: options.limits)
    let carried = EncodeOptions.Metadata(carryingOver: try decoder.metadata())
    precondition(ImageMetadata(exif: carried.exif).position == nil, "a position was carried over")
    if let reader = try decoder.frameReader(options: options) {
        precondition(reader.frames.count == decoder.header.animation.durations.count)
        for index in reader.frames.indices.prefix(4) {
            let frame = reader.frames[index]
            precondition(frame.left + frame.width <= reader.canvas.width)
            precondition(frame.top + frame.height <= reader.canvas.height)
            guard let pixels = try? reader.pixels(of: index) else { continue }
            precondition(pixels.width == frame.width && pixels.height == frame.height)
            checksum(pixels)
        }
    }
    let pixels = try decoder.decodeStored(options: options).image.pixels
    checksum(pixels)
    guard options.sufficientSize == nil else { return pixels }
    precondition(pixels.width == decoder.header.pixelWidth && pixels.height == decoder.header.pixelHeight)
    return pixels
}

/// The checksum of the streamed rows.
private func decodeRows(_ data: Data, _ options: DecodeOptions) throws -> UInt64? {
    let decoder = try ImageDecoder(data, registry: CoderRegistry(coders: [WebPCoder()]), limits: options.limits)
    return try decoder.withRows(options: options) { rows, _, _ in
        let plane = rows.layout.planes[0]
        var row = [UInt8](repeating: 0, count: plane.bytesPerRow)
        var sum: UInt64 = 0
        for _ in 0..<plane.height {
            try row.withUnsafeMutableBytes { try rows.readRow(into: $0) }
            for sample in row.prefix(plane.usedBytesPerRow) { sum = sum &* 31 &+ UInt64(sample) }
        }
        return sum
    }
}

private func decodePieces(_ data: Data, _ options: DecodeOptions) throws -> PixelBuffer? {
    guard let decoder = try WebPCoder().makeIncrementalDecoder(for: .webp, options: options) else { return nil }
    return try decodePieces(data, with: decoder)
}
