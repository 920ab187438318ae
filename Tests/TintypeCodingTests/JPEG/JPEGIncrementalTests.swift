// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// JPEGs that arrive in pieces.
@Suite(.computing, .enabled(if: Corpus.isRead), .timeLimit(.minutes(5))) struct JPEGIncrementalTests {
    private let coder = JPEGCoder()

    private static let images = Corpus.images(
        in: "jpeg",
        "jpeg-progressive",
        "jpeg-cmyk",
        "jpeg-exotic",
        "jpeg-orientation"
    ) { $0.expectation == "ok" && $0.format == "jpeg" }

    private func decoder(_ options: DecodeOptions = DecodeOptions()) throws -> any IncrementalDecoder {
        try #require(try self.coder.makeIncrementalDecoder(for: .jpeg, options: options))
    }

    @Test(arguments: images, [1_021]) func `pieces give the same pixels as the whole`(
        _ picture: CorpusImage,
        size: Int
    ) throws {
        let data = try picture.data
        let whole = try self.coder.open(data).decode(options: DecodeOptions())
        let decoder = try self.decoder()
        for start in stride(from: 0, to: data.count, by: size) {
            try decoder.append(data[start..<min(start + size, data.count)])
        }
        let image = try decoder.finish().image
        #expect(PixelMeasure.digest(image.pixels) == PixelMeasure.digest(whole.image.pixels))
        #expect(image.orientation == whole.image.orientation)
    }

    @Test(arguments: [
        "jpeg-progressive/peacock.progressive.jpeg", "jpeg/non-interleaved-mcu.jpg", "jpeg-exotic/testimgari.jpg",
        "jpeg/jpeg_ff00_header.jpg", "jpeg-cmyk/jpg-cmyk-2.jpg",
    ])
    func `single bytes give the same pixels as the whole`(path: String) throws {
        let image = try #require(Corpus.images.first { $0.path == path })
        try self.`pieces give the same pixels as the whole`(image, size: 1)
    }

    @Test(arguments: ProgressivePrefix.all) func `a preview shows each scan`(_ prefix: ProgressivePrefix) throws {
        let data = try prefix.data
        let decoder = try self.decoder(DecodeOptions(color: .ignore))
        // The decoder knows that a scan is complete when it sees the next marker.
        try decoder.append(data.prefix(prefix.byteCount + 2))
        let preview = try decoder.preview()
        let image: Image
        if let preview {
            image = preview
        } else {
            // The file has no end marker, so the decoder cannot know that the last scan is complete.
            try #require(prefix.byteCount + 2 > data.count)
            image = try self.lenientImage(data)
        }
        let means = PixelMeasure.means(image.pixels)
        let mean = zip(means.whole, prefix.mean).map { abs($0 - $1) }.max() ?? 0
        let cell = zip(means.cells, prefix.thumbnail).map { abs($0 - Double($1)) }.max() ?? 0
        let isRight = mean <= 1 && cell <= (max(image.width, image.height) < 64 ? 8.5 : 3.5)
        #expect(isRight != ProgressivePrefix.exceptions.contains("\(prefix)"), "mean \(mean), cell \(cell)")
        #expect(try decoder.preview() == nil)
    }

    private func lenientImage(_ data: Data) throws -> Image {
        let decoder = try self.decoder(DecodeOptions(allowsTruncated: true, color: .ignore))
        try decoder.append(data)
        return try decoder.finish().image
    }

    @Test func `rows of a baseline image are shown as they arrive`() throws {
        let picture = try #require(Corpus.images.first { $0.path == "photos/TestJFIF.jpg" })
        let data = try picture.data
        let decoder = try self.decoder()
        try decoder.append(data.prefix(data.count / 2))
        let preview = try #require(try decoder.preview())
        let rest = try #require(preview.pixels.rows(from: preview.height - 10).max())
        #expect(rest == 0)
        #expect((preview.pixels.rows(from: 0).max() ?? 0) > 0)
        #expect(try decoder.preview() == nil)
    }

    @Test(arguments: ["photos/TestJFIF.jpg", "jpeg-progressive/cat.jpg"]) func `a missing end is an error`(
        path: String
    ) throws {
        let picture = try #require(Corpus.images.first { $0.path == path })
        let data = try picture.data
        for allowsTruncated in [false, true] {
            let decoder = try self.decoder(DecodeOptions(allowsTruncated: allowsTruncated))
            try decoder.append(data.prefix(data.count * 3 / 4))
            if allowsTruncated {
                #expect(try decoder.finish().image.width == decoder.header?.pixelWidth)
            } else {
                let error = #expect(throws: CodingError.self) { try decoder.finish() }
                #expect(error?.code == .truncated)
            }
        }
    }

    @Test func `limits are checked before pixels exist`() throws {
        let image = try #require(Corpus.images.first { $0.path == "bombs/max_size.jpg" })
        let decoder = try self.decoder()
        let error = #expect(throws: CodingError.self) { try decoder.append(try image.data) }
        #expect(error?.code == .sideTooLong)
    }
}

/// A progressive image after one of its scans, from a line of the corpus' progressive.tsv.
struct ProgressivePrefix: Sendable, CustomStringConvertible {
    /// The scans that libjpeg-turbo 2.1 smooths differently from version 3, which made the table.
    ///
    /// `djpeg` 2.1.5 gives exactly our pixels for the same bytes.
    static let exceptions: Set<String> = [
        "jpeg-progressive/jpg-progressive.jpg scan 0", "jpeg-progressive/jpg-progressive.jpg scan 1",
        "jpeg-progressive/jpg-progressive.jpg scan 2", "jpeg-progressive/peacock.progressive.jpeg scan 0",
        "jpeg-progressive/peacock.progressive.scan000.jpeg scan 0",
        "jpeg-progressive/peacock.progressive.scan001.jpeg scan 0",
        "jpeg-progressive/peacock.progressive.scan002.jpeg scan 0",
        "jpeg-progressive/peacock.progressive.scan003.jpeg scan 0",
        "jpeg-progressive/peacock.progressive.scan004.jpeg scan 0",
        "jpeg-progressive/peacock.progressive.scan005.jpeg scan 0",
        "jpeg-progressive/peacock.progressive.scan006.jpeg scan 0",
        "jpeg-progressive/peacock.progressive.scan007.jpeg scan 0",
        "jpeg-progressive/peacock.progressive.scan008.jpeg scan 0", "jpeg/app13-multiple.jpg scan 2",
    ]

    private let path: String
    private let scan: Int
    let byteCount: Int
    let mean: [Double]
    let thumbnail: [UInt8]

    var description: String { "\(self.path) scan \(self.scan)" }

    var data: Data {
        get throws { try Data(contentsOf: try #require(Fixtures.corpus).appending(path: self.path)) }
    }

    private init?(_ line: Data) {
        let columns = line.split(separator: UInt8(ascii: "\t")).map { String(decoding: $0, as: UTF8.self) }
        guard columns.count >= 6, let scan = Int(columns[1]), let count = Int(columns[3]) else { return nil }
        self.path = columns[0]
        self.scan = scan
        self.byteCount = count
        self.mean = columns[4].split(separator: ",").compactMap { Double($0) }
        let digits = columns[5].compactMap(\.hexDigitValue)
        self.thumbnail = stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    static let all: [ProgressivePrefix] = {
        guard
            let folder = Fixtures.corpus,
            let table = try? Data(contentsOf: folder.appending(path: "progressive.tsv"))
        else { return [] }
        return table.split(separator: UInt8(ascii: "\n")).dropFirst().compactMap { ProgressivePrefix($0) }
    }()
}

extension PixelBuffer {
    /// Returns the samples from a row on.
    fileprivate func rows(from row: Int) -> [UInt8] {
        self.withUnsafeBytes { Array($0[(row * self.layout.planes[0].bytesPerRow)...].prefix(self.width * 3)) }
    }
}
