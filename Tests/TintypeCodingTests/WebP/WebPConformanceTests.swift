// SPDX-License-Identifier: Apache-2.0

#if WebP
import FoundationEssentials
import Testing
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Compares real WebP files with the results of reference decoders.
@Suite(.computing, .enabled(if: Corpus.isRead), .timeLimit(.minutes(10))) struct WebPConformanceTests {
    /// A composited frame in the corpus.
    struct Frame: Sendable {
        let milliseconds: Int
        let digest: String
    }

    static let frames: [String: [Frame]] = {
        guard let folder = Fixtures.corpus, let table = try? Data(contentsOf: folder.appending(path: "frames.tsv"))
        else {
            return [:]
        }
        var frames: [String: [Frame]] = [:]
        for line in String(decoding: table, as: UTF8.self).split(separator: "\n").dropFirst() {
            let columns = line.split(separator: "\t").map { String($0) }
            guard columns.count == 5, columns[0].hasSuffix(".webp"), let duration = Int(columns[2]) else { continue }
            frames[columns[0], default: []].append(Frame(milliseconds: duration, digest: columns[3]))
        }
        return frames
    }()

    static let stills = Corpus.images(in: "webp", "webp-vectors", "webp-orientation", "icc", "photos") {
        $0.format == "webp" && $0.expectation == "ok"
    }
    static let animations = Corpus.images(in: "webp-anim")

    @Test(arguments: Self.stills) func `every way to decode a still gives the reference`(
        _ image: CorpusImage
    ) throws {
        let data = try image.data
        let encoded = try WebPCoder().open(data)
        #expect(encoded.header.hasAlpha || image.hasAlpha == false)
        #expect((encoded.header.colorProfile != nil) == (image.hasProfile == true))
        #expect(encoded.header.animation.frameCount == 1)
        let whole = try encoded.decode(options: DecodeOptions()).image.pixels
        #expect(PixelMeasure.digest(whole) == image.digest)
        #expect(PixelMeasure.digest(try #require(try WebPSamples.rows(of: data))) == image.digest)
        var generator = SeededGenerator(seed: UInt64(data.count))
        let pieces = WebPSamples.pieces(of: data, upTo: 3_000, using: &generator)
        let arrived = try WebPSamples.decode(pieces).image
        #expect(PixelMeasure.digest(arrived.pixels) == image.digest)
        #expect(arrived.orientation == encoded.header.orientation)
    }

    @Test(arguments: Self.animations) func `every frame is the references`(_ image: CorpusImage) throws {
        let data = try image.data
        let decoder = try ImageDecoder(data, registry: CoderRegistry(coders: [WebPCoder()]))
        let reader = try #require(try decoder.frameReader())
        let compositor = try FrameCompositor(reader)
        let frames = try #require(Self.frames[image.path])
        #expect(decoder.header.animation.loopCount == image.loopCount)
        #expect(decoder.header.animation.durations == frames.map { $0.milliseconds < 11 ? 100 : $0.milliseconds })
        #expect(reader.frames.count == frames.count)
        for (index, frame) in frames.enumerated() {
            let pixels = try compositor.frame(at: index)
            #expect(PixelMeasure.digest(pixels, clearsHidden: true) == frame.digest, "frame \(index)")
            if !decoder.header.hasAlpha { #expect(!Image(pixels: pixels).hasTransparency, "frame \(index)") }
        }
        // Decode the last frames backwards, each from a key frame.
        for index in frames.indices.reversed().prefix(4) {
            let pixels = try compositor.frame(at: index)
            #expect(PixelMeasure.digest(pixels, clearsHidden: true) == frames[index].digest, "frame \(index)")
        }
        var generator = SeededGenerator(seed: 3)
        let first = try WebPSamples.decode(WebPSamples.pieces(of: data, upTo: 9_000, using: &generator)).image.pixels
        #expect(PixelMeasure.digest(first, clearsHidden: true) == frames[0].digest)
    }
}
#endif
