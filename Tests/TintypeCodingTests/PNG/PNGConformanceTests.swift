// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeConformanceSupport
import TintypeImage
import TintypeTestTraits

/// Compares the ways to decode the PNGs of the corpus with each other and with libspng.
@Suite(.computing, .enabled(if: Corpus.isRead), .timeLimit(.minutes(5))) struct PNGConformanceTests {
    private static func images(_ folder: String) -> [CorpusImage] {
        Corpus.images(in: folder) { $0.format == "png" }
    }

    /// The three ways to decode are: the whole file, row by row, and in pieces.
    @Test(
        arguments: [
            "pngsuite", "png", "png-corrupt", "png-fuzz", "png-orientation", "icc", "apng", "apng-corrupt", "bombs",
        ],
        [false, true]
    )
    func `all ways agree`(folder: String, allowsTruncated: Bool) throws {
        let options = DecodeOptions(
            limits: DecodingLimits(maximumPixels: 1_000_000),
            allowsTruncated: allowsTruncated
        )
        for image in Self.images(folder) {
            let data = try image.data
            let whole = PNGWays.whole(data, options)
            #expect(PNGWays.rows(data, options).map { $0 == whole } != false, "\(image.path) by rows")
            for size in [1 << 20, 997, 13] where data.count / size < 20_000 {
                let pieces = PNGWays.pieces(data, options, size: size)
                #expect(pieces == whole, "\(image.path) in pieces of \(size)")
            }
        }
    }

    /// The pixels agree with libspng, an independent decoder, for every file that libspng decodes.
    @Test(arguments: ["pngsuite", "png", "png-orientation", "icc", "apng", "png-corrupt"])
    func `libspng agrees`(folder: String) throws {
        for image in Self.images(folder) where image.expectation == "ok" {
            let data = try image.data
            guard let reference = PNGReference.samples(of: data) else { continue }
            let decoder = try ImageDecoder(PNGReference.still(data), registry: SampleFiles.registry)
            #expect(PNGReference.expanded(try decoder.decodeStored().image.pixels) == reference, "\(image.path)")
        }
    }

    @Test func `no fuzzed file crashes`() throws {
        for image in Self.images("png-fuzz") {
            let data = try image.data
            for allowsTruncated in [false, true] {
                let options = DecodeOptions(
                    limits: DecodingLimits(maximumPixels: 1_000_000),
                    allowsTruncated: allowsTruncated
                )
                guard case .pixels(let width, let height, _) = PNGWays.whole(data, options) else { continue }
                #expect((width, height) == (try #require(image.size)), "\(image.path)")
            }
        }
    }
}
