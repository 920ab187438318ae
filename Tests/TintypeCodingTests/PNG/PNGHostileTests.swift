// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// Files that are made to take much time or memory.
@Suite(.computing, .timeLimit(.minutes(5))) struct PNGHostileTests {
    @Test func `what broke once breaks no more`() throws {
        let files = CrashFiles.named("png-")
        #expect(!files.isEmpty)
        for url in files {
            let data = try Data(contentsOf: url)
            for allowsTruncated in [false, true] {
                let options = DecodeOptions(
                    limits: DecodingLimits(maximumPixels: 1 << 20),
                    allowsTruncated: allowsTruncated
                )
                let whole = PNGWays.whole(data, options)
                if let rows = PNGWays.rows(data, options) { #expect(rows == whole, "\(url.lastPathComponent)") }
                #expect(PNGWays.pieces(data, options, size: 7) == whole, "\(url.lastPathComponent)")
            }
        }
    }

    /// The time limit ends the test if each chunk costs as much as all chunks before it.
    @Test func `millions of chunks are read once`() throws {
        let file = PNGFile(try SampleFiles.smooth(.png))
        var data = PNGFile(chunks: [file.chunks[0]]).data
        let empty = PNGFile(chunks: [.init(type: "teSt", body: [])]).data.dropFirst(8)
        let many = Data((0..<100_000).flatMap { _ in Array(empty) })
        for _ in 0..<20 { data.append(many) }
        data.append(PNGFile(chunks: Array(file.chunks.dropFirst())).data.dropFirst(8))
        #expect(try PNGCoder().open(data).header.pixelWidth == 64)
        #expect(try SampleFiles.decode(data).width == 64)
    }

    /// Each side is the longest that the format allows, so the number of bytes overflows an integer.
    @Test func `a canvas that no memory holds is refused`() {
        let area = UInt32(Int32.max).bigEndianBytes + UInt32(Int32.max).bigEndianBytes
        let file = PNGFile(chunks: [
            .init(type: "IHDR", body: area + [8, 6, 0, 0, 0]),
            .init(type: "acTL", body: UInt32(1).bigEndianBytes + [0, 0, 0, 0]),
            .init(type: "fcTL", body: [0, 0, 0, 0] + area + [UInt8](repeating: 0, count: 8) + [0, 1, 0, 10, 0, 0]),
            .init(type: "IDAT", body: [0]),
            .init(type: "IEND", body: []),
        ])
        let error = #expect(throws: CodingError.self) { try SampleFiles.decode(file.data) }
        #expect(error?.code == .sideTooLong)
    }

    @Test func `many parts of pixels make one image`() throws {
        let file = PNGFile(try SampleFiles.encode(try .noise(.rgb8, width: 40, height: 30), as: .png))
        let body = file.chunks.first { $0.type == "IDAT" }?.body ?? []
        let parts = body.flatMap { byte in
            [PNGFile.Chunk(type: "IDAT", body: []), PNGFile.Chunk(type: "IDAT", body: [byte])]
        }
        let ends = [file.chunks[0]] + parts + [PNGFile.Chunk(type: "IEND", body: [])]
        let split = PNGFile(chunks: ends + [PNGFile.Chunk(type: "IDAT", body: body)]).data
        let whole = PNGWays.whole(file.data, DecodeOptions())
        #expect(PNGWays.whole(split, DecodeOptions()) == whole)
        #expect(PNGWays.rows(split, DecodeOptions()) == whole)
        #expect(PNGWays.pieces(split, DecodeOptions(), size: 5) == whole)
    }

    /// The declared size is too large, even four gigabytes, or too small.
    @Test(arguments: [[0xFF, 0xFF, 0xFF, 0xFF], [0, 0, 0, 200], [0, 0, 0, 0], [0, 0x40, 0, 0]] as [[UInt8]])
    func `a broken profile is left out`(size: [UInt8]) throws {
        let profile = Data(size + [UInt8](repeating: 7, count: 60))
        let options = EncodeOptions(metadata: .init(colorProfile: profile))
        let image = Image(pixels: try .smooth(.rgb8, width: 30, height: 20))
        let data = try PNGCoder().encode(image, as: .png, options: options)
        #expect(try PNGCoder().open(data).header.colorProfile == nil)
        #expect(try SampleFiles.decode(data).width == 30)
    }

    @Test(.enabled(if: Corpus.isRead)) func `bombs are refused at once`() throws {
        for image in Corpus.images(in: "bombs") where image.format == "png" && image.expectation == "limit" {
            let data = try image.data
            let (_, peak) = AllocatedMemory.peak {
                #expect(throws: CodingError.self) { try ImageDecoder(data, registry: SampleFiles.registry) }
            }
            #expect(peak < 1 << 20, "\(image.path)")
        }
    }
}
