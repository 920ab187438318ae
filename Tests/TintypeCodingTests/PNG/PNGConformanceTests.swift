// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeConformanceSupport
import TintypeImage
import TintypeTestTraits

/// Compares every PNG of the corpus with its manifest.
@Suite(.computing, .enabled(if: Corpus.isRead), .timeLimit(.minutes(5))) struct PNGConformanceTests {
    @Test(
        arguments: [
            "pngsuite", "png", "png-corrupt", "png-orientation", "icc", "photos", "apng", "apng-corrupt", "bombs",
            "jpeg", "jpeg-corrupt", "jpeg-progressive",
        ]
    )
    func `a folder comes out as the manifest says`(folder: String) throws {
        var counts = (right: 0, refused: 0)
        for image in PNGCorpus.images(folder) {
            switch try PNGCorpus.outcome(of: image) {
            case .right: counts.right += 1
            case .refused: counts.refused += 1
            case .wrong(let reason): Issue.record("\(image.path): \(reason)")
            }
        }
        print("PNG \(folder): \(counts.right) right, \(counts.refused) refused")
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
        for image in PNGCorpus.images(folder) {
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
        for image in PNGCorpus.images(folder) where image.expectation == "ok" {
            let data = try image.data
            guard let reference = PNGReference.samples(of: data) else { continue }
            let decoder = try ImageDecoder(PNGReference.still(data), registry: SampleFiles.registry)
            #expect(PNGReference.expanded(try decoder.decodeStored().image.pixels) == reference, "\(image.path)")
        }
    }

    @Test func `frames are as composited`() throws {
        var counts = (exact: 0, close: 0)
        for (path, frames) in try PNGCorpus.frames() {
            let image = try #require(Corpus.images.first { $0.path == path })
            let data = try image.data
            for frame in frames {
                let pixels = try SampleFiles.decode(data, DecodeOptions(frame: frame.index)).pixels
                let isRight = PixelMeasure.digest(pixels, clearsHidden: true) == frame.digest
                if isRight { counts.exact += 1 } else { counts.close += 1 }
                #expect(isRight || !frame.isExact, "\(path), frame \(frame.index)")
            }
            let durations = try ImageDecoder(data, registry: SampleFiles.registry).header.animation.durations
            let expected = frames.map { $0.milliseconds < 11 ? 100 : $0.milliseconds }
            #expect(durations == (frames.count > 1 ? expected : []), "\(path)")
        }
        print("APNG frames: \(counts.exact) exact, \(counts.close) within rounding")
    }

    @Test func `no fuzzed file crashes`() throws {
        for image in PNGCorpus.images("png-fuzz") {
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
