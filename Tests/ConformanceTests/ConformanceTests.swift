// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCoding
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// Compares real files with the results of reference decoders.
@Suite(.computing, .enabled(if: Corpus.isRead), .timeLimit(.minutes(10))) struct ConformanceTests {
    private static let check = ConformanceCheck()
    private static let folders = Set(Corpus.images.map(\.folder)).sorted()

    @Test(arguments: Self.folders) func `every file is as the corpus says`(folder: String) throws {
        var table = ConformanceTable()
        for image in Corpus.images(in: folder) { table.add(image, try Self.check.judge(image)) }
        #expect(table.unexplained == [])
    }

    @Test func `every exception is still one`() throws {
        for path in CorpusExceptions.reasons.keys {
            let image = try #require(Corpus.images.first { $0.path == path })
            let verdict = try Self.check.judge(image)
            #expect(verdict != .right, "\(path) is right now: take it off the list")
        }
        for path in CorpusExceptions.profiles.keys {
            let image = try #require(Corpus.images.first { $0.path == path })
            let header = try ImageDecoder(image.data, registry: CoderRegistry()).header
            #expect(header.colorProfile == nil, "\(path) is right now: take it off the list")
        }
    }
}

@Suite(.computing) struct PixelMeasureTests {
    @Test(arguments: [16, 512, 2_048, 5_000], 0..<4)
    func `every row counts`(height: Int, row: Int) throws {
        let pixels = try PixelBuffer.make(.gray8, width: 3, height: height) { _, line, _ in line % 4 == row ? 255 : 0 }
        let means = PixelMeasure.means(pixels)
        #expect(abs(means.whole[0] - 63.75) < 0.01)
    }
}
