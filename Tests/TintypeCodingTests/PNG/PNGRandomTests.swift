// SPDX-License-Identifier: Apache-2.0

import CTintypeSPNG
import FoundationEssentials
import Testing
import TintypeCoding
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// Compares our decoder with libspng for random files of all colour types, depths and filters.
@Suite(.computing, .timeLimit(.minutes(5))) struct PNGRandomTests {
    struct Kind: Sendable, CustomTestStringConvertible {
        let color: UInt8
        let depth: UInt8
        let isInterlaced: Bool
        var testDescription: String {
            "colour \(self.color), \(self.depth) bits\(self.isInterlaced ? ", interlaced" : "")"
        }
    }

    static let kinds: [Kind] = [
        (0, [1, 2, 4, 8, 16]), (2, [8, 16]), (3, [1, 2, 4, 8]), (4, [8, 16]), (6, [8, 16]),
    ].flatMap { color, depths in
        depths.flatMap { depth in
            [false, true].map { Kind(color: UInt8(color), depth: UInt8(depth), isInterlaced: $0) }
        }
    }

    @Test(arguments: Self.kinds) func `every way gives what libspng gives`(kind: Kind) throws {
        var generator = SeededGenerator(seed: UInt64(kind.color) << 8 | UInt64(kind.depth))
        for round in 0..<12 {
            let side = round < 9 ? 1...40 : 90...160
            let size = (Int.random(in: side, using: &generator), Int.random(in: side, using: &generator))
            let data = try Self.file(kind, width: size.0, height: size.1, isDrawing: round > 9, &generator)
            let reference = try #require(PNGReference.samples(of: data))
            let encoded = try PNGCoder().open(data)
            let pixels = try encoded.decode(options: DecodeOptions()).image.pixels
            #expect(PNGReference.expanded(pixels) == reference, "\(size)")
            let whole = PNGWays.whole(data, DecodeOptions())
            #expect(PNGWays.whole(data, DecodeOptions(allowsTruncated: true)) == whole)
            #expect(PNGWays.rows(data, DecodeOptions()).map { $0 == whole } ?? kind.isInterlaced)
            let piece = Int.random(in: 1...200, using: &generator)
            #expect(PNGWays.pieces(data, DecodeOptions(), size: piece) == whole, "\(size) in pieces of \(piece)")
        }
    }

    @Test(arguments: Self.kinds) func `what is cut is the same each way`(kind: Kind) throws {
        var generator = SeededGenerator(seed: UInt64(kind.color) << 8 | UInt64(kind.depth))
        let data = try Self.file(kind, width: 37, height: 29, &generator)
        for count in stride(from: 0, to: data.count, by: max(1, data.count / 25)) {
            for allowsTruncated in [false, true] {
                let options = DecodeOptions(allowsTruncated: allowsTruncated)
                let whole = PNGWays.whole(data.prefix(count), options)
                guard count >= 8 else { continue }
                #expect(PNGWays.pieces(data.prefix(count), options, size: 11) == whole, "\(count), \(allowsTruncated)")
                if let rows = PNGWays.rows(data.prefix(count), options) {
                    #expect(rows == whole, "\(count), \(allowsTruncated)")
                }
            }
        }
    }

    /// Returns a file with random samples, a random filter for each scanline, and often a transparent colour.
    ///
    /// A drawing has flat parts with edges at random places, and a single filter.
    private static func file(
        _ kind: Kind,
        width: Int,
        height: Int,
        isDrawing: Bool = false,
        _ generator: inout SeededGenerator
    ) throws -> Data {
        let context = try #require(spng_ctx_new(CInt(SPNG_CTX_ENCODER.rawValue)))
        defer { spng_ctx_free(context) }
        spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1)
        spng_set_option(
            context,
            SPNG_FILTER_CHOICE,
            CInt((isDrawing ? SPNG_FILTER_CHOICE_PAETH : SPNG_FILTER_CHOICE_ALL).rawValue)
        )
        var header = spng_ihdr()
        header.width = UInt32(width)
        header.height = UInt32(height)
        header.bit_depth = kind.depth
        header.color_type = kind.color
        header.interlace_method = kind.isInterlaced ? 1 : 0
        #expect(spng_set_ihdr(context, &header) == 0)
        if kind.color == 3 {
            var palette = spng_plte()
            palette.n_entries = UInt32(1) << UInt32(kind.depth)
            withUnsafeMutableBytes(of: &palette.entries) { entries in
                for index in entries.indices { entries[index] = UInt8.random(in: 0...255, using: &generator) }
            }
            #expect(spng_set_plte(context, &palette) == 0)
        }
        if kind.color < 4, Bool.random(using: &generator) {
            var color = spng_trns()
            let maximum = UInt16(truncatingIfNeeded: 1 << Int(kind.depth) - 1)
            color.gray = maximum / 2
            (color.red, color.green, color.blue) = (1, 2, 3)
            color.n_type3_entries = 2
            #expect(spng_set_trns(context, &color) == 0)
        }
        let rowCount = (width * Int(kind.depth) * [1, 0, 3, 1, 2, 0, 4][Int(kind.color)] + 7) / 8
        let count = rowCount * height
        let flat = (0..<8).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let edges = (0..<3).map { _ in Int.random(in: 0..<rowCount, using: &generator) }
        // Mix smooth and rough parts, so that all filters are chosen.
        let samples = (0..<count).map { index in
            guard !isDrawing else {
                let (row, column) = index.quotientAndRemainder(dividingBy: rowCount)
                return flat[(row / 11 + edges.count { $0 <= column } + column % 2) % 8]
            }
            return index / 600 % 2 == 0
                ? UInt8.random(in: 0...255, using: &generator) : UInt8(truncatingIfNeeded: index / 7)
        }
        let code = spng_encode_image(
            context,
            samples,
            samples.count,
            CInt(SPNG_FMT_PNG.rawValue),
            CInt(SPNG_ENCODE_FINALIZE.rawValue)
        )
        #expect(code == 0, "\(String(cString: spng_strerror(code)))")
        var length = 0
        var result: CInt = 0
        let bytes = try #require(spng_get_png_buffer(context, &length, &result))
        return Data(bytesNoCopy: bytes, count: length, deallocator: .free)
    }
}
