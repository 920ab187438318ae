// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCoding
import TintypeImage

/// Decodes libFuzzer's input, whole and in pieces.
///
/// The last byte also determines the options and the length of pieces, so that real files remain valid inputs.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    guard let start, count > 1 else { return 0 }
    let bytes = Data(bytes: start, count: count)
    let choice = bytes[count - 1]
    // A copy of its own, so that the address sanitizer sees reads over the end.
    let file = Data(Array(bytes))
    let coder = JPEGCoder()
    let limits = DecodingLimits(maximumPixels: 200_000, maximumSide: 4_096)
    var options = DecodeOptions(limits: limits, allowsTruncated: choice & 1 != 0)
    if choice & 2 != 0 { options.sufficientSize = PixelSize(width: 8, height: 8) }
    if choice & 4 != 0 { options.color = .ignore }
    if let metadata = try? coder.open(file).metadata(limits: limits) {
        let carried = EncodeOptions.Metadata(carryingOver: metadata)
        precondition(ImageMetadata(exif: carried.exif).position == nil, "a position was carried over")
    }
    whole(file, coder, options)
    pieces(file, coder, options, seed: choice)
    return 0
}

/// Decodes the header, the image and its rows.
private func whole(_ file: Data, _ coder: JPEGCoder, _ options: DecodeOptions) {
    guard
        let encoded = try? coder.open(file), encoded.header.pixelWidth * encoded.header.pixelHeight <= 200_000,
        let decoded = try? encoded.decode(options: options)
    else { return }
    touch(decoded.image)
    _ = try? encoded.withRows(options: options) { rows, _, _ in
        let row = UnsafeMutableRawBufferPointer.allocate(
            byteCount: rows.layout.planes[0].usedBytesPerRow,
            alignment: 1
        )
        defer { row.deallocate() }
        for _ in 0..<rows.layout.height { try rows.readRow(into: row) }
    }
}

/// The incremental decoder, with previews.
private func pieces(_ file: Data, _ coder: JPEGCoder, _ options: DecodeOptions, seed: UInt8) {
    guard let decoder = try? coder.makeIncrementalDecoder(for: .jpeg, options: options) else { return }
    var state = UInt32(seed) | 1
    var start = file.startIndex
    while start < file.endIndex {
        state = state &* 1_664_525 &+ 1_013_904_223
        let size = Int(state >> 16) % (seed & 8 != 0 ? 24 : 2_000) + 1
        let end = min(start + size, file.endIndex)
        guard (try? decoder.append(file[start..<end])) != nil else { break }
        if state & 3 == 0, let image = try? decoder.preview() { touch(image) }
        start = end
    }
    if let decoded = try? decoder.finish() { touch(decoded.image) }
}

/// Reads all pixels, so that the sanitizer detects accesses out of bounds.
private func touch(_ image: Image) {
    let sum = image.pixels.withBytes { span in
        span.withUnsafeBytes { $0.reduce(0 as UInt64) { $0 &+ UInt64($1) } }
    }
    precondition(sum < .max)
}
