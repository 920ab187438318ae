// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCoding
import TintypeImage

/// Decodes the fuzzer's bytes in every possible way.
///
/// Errors are valid results, and everything else is a finding.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let data = start.map { Data(bytes: $0, count: count) } ?? Data()
    let limits = DecodingLimits(maximumPixels: 1 << 20, maximumSide: 1 << 16)
    for allowsTruncated in [false, true] {
        var options = DecodeOptions(limits: limits, allowsTruncated: allowsTruncated)
        options.color = .ignore
        let whole = decode(data, options)
        let rows = decodeRows(data, options)
        precondition(rows == nil || rows == whole, "row by row it is another image")
        let pieces = decodePieces(data, options)
        precondition(data.count < 8 || pieces == whole, "in pieces it is another image")
        decodeFrames(data, options)
    }
    return 0
}

private let registry = CoderRegistry(coders: [PNGCoder()])

/// The sum of the samples, or -1 for an error: enough to compare.
private func decode(_ data: Data, _ options: DecodeOptions) -> Int {
    guard let decoder = try? ImageDecoder(data, registry: registry, limits: options.limits) else { return -1 }
    if let metadata = try? decoder.metadata() {
        let carried = EncodeOptions.Metadata(carryingOver: metadata)
        precondition(ImageMetadata(exif: carried.exif).position == nil, "a position was carried over")
    }
    guard let image = try? decoder.decodeStored(options: options).image else { return -1 }
    precondition(image.width == decoder.header.pixelWidth && image.height == decoder.header.pixelHeight)
    return sum(image.pixels)
}

private func decodeRows(_ data: Data, _ options: DecodeOptions) -> Int? {
    guard let decoder = try? ImageDecoder(data, registry: registry, limits: options.limits) else { return nil }
    do {
        return try decoder.encoded.withRows(options: options) { source, _, _ in
            let plane = source.layout.planes[0]
            let row = UnsafeMutableRawBufferPointer.allocate(byteCount: plane.usedBytesPerRow, alignment: 64)
            defer { row.deallocate() }
            var sum = 0
            for _ in 0..<plane.height {
                try source.readRow(into: row)
                for byte in row { sum += Int(byte) }
            }
            return sum
        }
    } catch {
        return -1
    }
}

/// Decodes in pieces, whose sizes come from the bytes themselves.
private func decodePieces(_ data: Data, _ options: DecodeOptions) -> Int {
    do {
        guard let decoder = try PNGCoder().makeIncrementalDecoder(for: .png, options: options) else { return -1 }
        var offset = data.startIndex
        var pieces = 0
        while offset < data.endIndex {
            let size = pieces > 400 ? data.count : 1 + Int(data[offset]) * (pieces % 7 + 1) / 3
            let end = min(data.endIndex, offset + size)
            try decoder.append(data[offset..<end])
            if pieces % 5 == 0, let preview = try decoder.preview() { _ = sum(preview.pixels) }
            offset = end
            pieces += 1
        }
        return sum(try decoder.finish().image.pixels)
    } catch {
        return -1
    }
}

private func decodeFrames(_ data: Data, _ options: DecodeOptions) {
    guard
        let decoder = try? ImageDecoder(data, registry: registry, limits: options.limits),
        let reader = try? decoder.frameReader(options: options)
    else { return }
    for index in reader.frames.indices.prefix(4) {
        guard let pixels = try? reader.pixels(of: index) else { continue }
        precondition(pixels.width == reader.frames[index].width && pixels.height == reader.frames[index].height)
        _ = sum(pixels)
    }
}

/// Reads every sample, so that the sanitizer detects uninitialised ones.
private func sum(_ pixels: PixelBuffer) -> Int {
    let plane = pixels.layout.planes[0]
    return pixels.withBytes { bytes in
        var sum = 0
        for row in 0..<plane.height {
            for offset in row * plane.bytesPerRow..<row * plane.bytesPerRow + plane.usedBytesPerRow {
                sum += Int(bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
            }
        }
        return sum
    }
}
