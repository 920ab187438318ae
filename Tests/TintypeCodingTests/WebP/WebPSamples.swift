// SPDX-License-Identifier: Apache-2.0

#if WebP
import FoundationEssentials
import Testing
import TintypeImage
import TintypeTestSupport

@testable import TintypeCoding

/// Builders of WebP files, and helpers that decode them.
enum WebPSamples {
    /// Returns a chunk with padding.
    static func chunk(_ name: String, _ body: some Collection<UInt8>) -> [UInt8] {
        Array(name.utf8) + self.number(body.count, 4) + Array(body) + (body.count % 2 == 0 ? [] : [0])
    }

    /// Returns a file of chunks, whose size field is correct unless `size` overrides it.
    static func file(_ chunks: [[UInt8]], size: Int? = nil) -> Data {
        let body = Array("WEBP".utf8) + chunks.joined()
        return Data(Array("RIFF".utf8) + self.number(size ?? body.count, 4) + body)
    }

    /// Returns a VP8X chunk.
    static func extended(_ flags: UInt8, _ width: Int, _ height: Int) -> [UInt8] {
        self.chunk("VP8X", [flags, 0, 0, 0] + self.number(width - 1, 3) + self.number(height - 1, 3))
    }

    /// Returns an ANIM chunk.
    static func timing(loopCount: Int) -> [UInt8] {
        self.chunk("ANIM", [0, 0, 0, 0] + self.number(loopCount, 2))
    }

    /// Returns an ANMF chunk around the chunks of an image.
    static func frame(
        _ image: [UInt8],
        left: Int = 0,
        top: Int = 0,
        width: Int,
        height: Int,
        milliseconds: Int = 100,
        flags: UInt8 = 0
    ) -> [UInt8] {
        let head =
            self.number(left / 2, 3) + self.number(top / 2, 3) + self.number(width - 1, 3)
            + self.number(height - 1, 3) + self.number(milliseconds, 3) + [flags]
        return self.chunk("ANMF", head + image)
    }

    /// Returns the chunks of an image without the file around them.
    static func image(_ pixels: PixelBuffer, _ compression: EncodeOptions.Compression = .lossless) throws -> [UInt8] {
        let options = EncodeOptions(compression: compression)
        let data = try WebPCoder().encode(Image(pixels: pixels), as: .webp, options: options)
        let container = try WebPContainer(data)
        let image = try #require(container.images.first)
        return Array(data[image.bytes]) + (image.bytes.count % 2 == 0 ? [] : [0])
    }

    /// Returns an image of one colour.
    static func flat(_ color: [UInt8], width: Int, height: Int) throws -> PixelBuffer {
        try .make(color.count == 4 ? .rgba8 : .rgb8, width: width, height: height) { color[$2] }
    }

    static func number(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    /// Cuts bytes into pieces of random size.
    static func pieces(of data: Data, upTo most: Int, using generator: inout SeededGenerator) -> [Data] {
        var pieces: [Data] = []
        var start = data.startIndex
        while start < data.endIndex {
            let end = min(data.endIndex, start + Int.random(in: 1...most, using: &generator))
            pieces.append(data[start..<end])
            start = end
        }
        return pieces
    }

    /// Decodes pieces as they arrive, and makes a preview after each.
    static func decode(_ pieces: [Data], _ options: DecodeOptions = DecodeOptions()) throws -> DecodedImage {
        let decoder = try #require(try WebPCoder().makeIncrementalDecoder(for: .webp, options: options))
        for piece in pieces {
            try decoder.append(piece)
            _ = try decoder.preview()
        }
        return try decoder.finish()
    }

    /// Returns a still made of its streamed rows, or `nil` if the file cannot be streamed.
    static func rows(of data: Data, _ options: DecodeOptions = DecodeOptions()) throws -> PixelBuffer? {
        let encoded = try WebPCoder().open(data)
        return try encoded.withRows(options: options) { rows, _, _ in
            try PixelBuffer(
                rows.layout,
                fillingUnsafely: { target in
                    let bytesPerRow = rows.layout.planes[0].bytesPerRow
                    for row in 0..<rows.layout.height {
                        let part = target[(row * bytesPerRow)..<((row + 1) * bytesPerRow)]
                        try rows.readRow(into: UnsafeMutableRawBufferPointer(rebasing: part))
                    }
                }
            )
        }
    }
}
#endif
