// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@Suite(.computing, .timeLimit(.minutes(10))) struct TruncationTests {
    static let cases: [(ImageFormat, PixelFormat)] = [
        (.jpeg, .gray8), (.jpeg, .rgb8), (.png, .gray8), (.png, .rgb8), (.png, .rgba8), (.webp, .rgb8), (.webp, .rgba8),
    ]

    /// Returns a file with a few thousand bytes in each format.
    private static func file(_ format: ImageFormat, _ pixelFormat: PixelFormat) throws -> Data {
        try SampleFiles.encode(try .noise(pixelFormat, width: 48, height: 40), as: format, quality: 60)
    }

    @Test(arguments: Self.cases) func `a missing end is an error`(format: ImageFormat, pixelFormat: PixelFormat) throws
    {
        let data = try Self.file(format, pixelFormat)
        // The decoder does not need the checksum of a PNG's end chunk, which protects no data.
        let end = data.count - (format == .png ? 4 : 0)
        let counts = Set(stride(from: 0, to: end, by: 10)).union(end - 24..<end)
        for count in counts.sorted() {
            let error = #expect(throws: CodingError.self, "\(count) of \(data.count) bytes") {
                try SampleFiles.decode(data.prefix(count))
            }
            if count > 64 {
                #expect(error?.code == .truncated, "\(count) of \(data.count) bytes: \(error?.message ?? "")")
            }
        }
        #expect(try SampleFiles.decode(data).width == 48)
    }

    @Test(arguments: Self.cases)
    func `what is there is shown where allowed`(format: ImageFormat, pixelFormat: PixelFormat) throws {
        let data = try Self.file(format, pixelFormat)
        let whole = try SampleFiles.decode(data).pixels
        var decodedRows = 0
        for count in stride(from: 0, to: data.count, by: 10) {
            guard let image = try? SampleFiles.decode(data.prefix(count), DecodeOptions(allowsTruncated: true)) else {
                // More bytes never make a decode fail that succeeded with fewer.
                #expect(decodedRows == 0, "\(count) of \(data.count) bytes")
                continue
            }
            #expect((image.width, image.height) == (48, 40))
            let matching = (0..<40).prefix { image.pixels.row($0) == whole.row($0) }.count
            #expect(matching >= decodedRows, "\(count) of \(data.count) bytes")
            decodedRows = matching
            if format != .jpeg {
                // Missing pixels are black or transparent.
                #expect((matching..<40).dropFirst().allSatisfy { image.pixels.row($0).allSatisfy { $0 == 0 } })
            }
        }
        // The blocks before the missing ones may differ, because upsampling depends on the missing ones.
        #expect(decodedRows >= 16)
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp]) func `a complete file is the same where allowed`(
        format: ImageFormat
    ) throws {
        let data = try Self.file(format, .rgb8)
        let allowed = try SampleFiles.decode(data, DecodeOptions(allowsTruncated: true))
        #expect(allowed.pixels.samples == (try SampleFiles.decode(data).pixels.samples))
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp]) func `bytes behind the end do no harm`(format: ImageFormat) throws
    {
        let data = try Self.file(format, .rgb8)
        let longer = data + Data("and then some more".utf8)
        #expect(try SampleFiles.decode(longer).pixels.samples == SampleFiles.decode(data).pixels.samples)
    }

    @Test func `a PNG with a wrong checksum is an error`() throws {
        var data = try Self.file(.png, .rgb8)
        // Damage the last byte of the checksum before the end chunk.
        data[data.count - 13] ^= 1
        let error = #expect(throws: CodingError.self) { try SampleFiles.decode(data) }
        #expect(error?.code == .corrupt)
    }

    @Test func `a wrong checksum without pixels costs only its chunk`() throws {
        var file = PNGFile(try Self.file(.png, .gray8))
        file.insert("tEXt", Array("Title\0a image".utf8))
        var data = file.data
        // Damage the checksum, which follows the signature, the header chunk, and the length, type and body of this
        // chunk.
        data[8 + 25 + 8 + 15] ^= 1
        #expect(try SampleFiles.decode(data).width == 48)
    }
}
