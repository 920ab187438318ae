// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// GIFs that arrive in pieces.
@Suite(.computing, .timeLimit(.minutes(5))) struct GIFIncrementalTests {
    private let coder = GIFCoder()

    @Test(.enabled(if: Fixtures.corpus != nil), arguments: GIFCorpus.files, [1, 7, 600, 100_000])
    func `pieces give the same image`(_ file: GIFCorpus.File, pieceSize: Int) throws {
        let data = try file.data
        guard data.count < 3_000 * pieceSize else { return }
        for allowsTruncated in [false, true] {
            let options = DecodeOptions(allowsTruncated: allowsTruncated)
            let whole = Result { try ImageDecoder(data, registry: CoderRegistry()).decodeStored(options: options) }
            let pieces = Result { try self.decode(data, pieceSize: pieceSize, options: options) }
            switch whole {
            case .success(let decoded):
                let other = try pieces.get().image
                #expect(other.pixels.format == decoded.image.pixels.format)
                #expect(GIFCorpus.pixels(of: other.pixels) == GIFCorpus.pixels(of: decoded.image.pixels))
            case .failure(let error):
                let other = #expect(throws: CodingError.self) { try pieces.get() }
                // Bytes without a signature never reach this decoder.
                if let error = error as? CodingError, error.code != .notAnImage { #expect(other?.code == error.code) }
            }
        }
    }

    @Test func `rows appear one after another`() throws {
        let pixels = (0..<100 * 100).map { GIFSamples.color($0 * 31 % 256) }
        let data = try self.coder.encode(
            try GIFSamples.image(pixels, width: 100),
            as: .gif,
            options: EncodeOptions()
        )
        let decoder = try self.makeDecoder(DecodeOptions())
        #expect(try decoder.preview() == nil)
        var known = 0
        var previews = 0
        for piece in Self.pieces(of: data, size: 500) {
            try decoder.append(piece)
            guard let preview = try decoder.preview() else { continue }
            previews += 1
            #expect(try decoder.preview() == nil)
            let shown = GIFCorpus.pixels(of: preview.pixels)
            let count = shown.firstIndex(of: 0) ?? shown.count
            #expect(count > known)
            #expect(Array(shown[..<count]) == Array(pixels[..<count]))
            #expect(shown[count...].allSatisfy { $0 == 0 })
            known = count
        }
        #expect(previews > 4)
        #expect(decoder.header?.pixelWidth == 100)
        #expect(GIFCorpus.pixels(of: try decoder.finish().image.pixels) == pixels)
    }

    @Test func `the header grows with the frames`() throws {
        let sample = GIFSamples.animations[0]
        let frames = try sample.frames.map {
            AnimationContent.Frame(image: try GIFSamples.image($0, width: sample.width), milliseconds: 50)
        }
        let data = try self.coder.encode(AnimationContent(frames: frames), as: .gif, options: EncodeOptions())
        let decoder = try self.makeDecoder(DecodeOptions())
        var counts: [Int] = []
        for piece in Self.pieces(of: data, size: 10) {
            try decoder.append(piece)
            if let count = decoder.header?.animation.frameCount, count != counts.last { counts.append(count) }
        }
        #expect(counts == [1, 2, 3, 4, 5, 6])
        #expect(decoder.header?.animation.loopCount == 0)
    }

    @Test func `a size over the limits is refused at once`() throws {
        let decoder = try self.makeDecoder(DecodeOptions())
        let error = #expect(throws: CodingError.self) {
            try decoder.append(Data("GIF89a\u{7F}\u{7F}\u{7F}\u{7F}\0\0\0".utf8))
        }
        #expect(error?.code == .tooManyPixels || error?.code == .sideTooLong)
    }

    private func makeDecoder(_ options: DecodeOptions) throws -> any IncrementalDecoder {
        try #require(try self.coder.makeIncrementalDecoder(for: .gif, options: options))
    }

    private func decode(_ data: Data, pieceSize: Int, options: DecodeOptions) throws -> DecodedImage {
        let decoder = try self.makeDecoder(options)
        for piece in Self.pieces(of: data, size: pieceSize) { try decoder.append(piece) }
        return try decoder.finish()
    }

    private static func pieces(of data: Data, size: Int) -> [Data] {
        stride(from: 0, to: data.count, by: size).map { data[$0..<min($0 + size, data.count)] }
    }
}
