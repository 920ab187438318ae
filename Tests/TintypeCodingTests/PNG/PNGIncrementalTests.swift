// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@Suite(.computing, .timeLimit(.minutes(5))) struct PNGIncrementalTests {
    private static func decoder(_ options: DecodeOptions = DecodeOptions()) throws -> any IncrementalDecoder {
        try #require(try PNGCoder().makeIncrementalDecoder(for: .png, options: options))
    }

    @Test func `rows appear as they arrive`() throws {
        let pixels = try PixelBuffer.noise(.rgb8, width: 60, height: 50)
        let data = try SampleFiles.encode(pixels, as: .png)
        let decoder = try Self.decoder()
        var known = 0
        for start in stride(from: 0, to: data.count, by: 400) {
            try decoder.append(data[start..<min(start + 400, data.count)])
            guard let preview = try decoder.preview() else { continue }
            let rows = (0..<50).prefix { preview.pixels.row($0) == pixels.row($0) }.count
            #expect(rows > known)
            known = rows
            #expect((known..<50).allSatisfy { preview.pixels.row($0).allSatisfy { $0 == 0 } })
            #expect(try decoder.preview() == nil, "nothing is new")
        }
        #expect(known == 50)
        #expect(decoder.header?.pixelWidth == 60)
        #expect(try decoder.finish().image.pixels.samples == pixels.samples)
    }

    @Test(.enabled(if: Corpus.isRead)) func `passes appear as blocks`() throws {
        let image = try #require(Corpus.images.first { $0.path == "pngsuite/basi2c08.png" })
        let data = try image.data
        let whole = try SampleFiles.decode(data).pixels
        let decoder = try Self.decoder()
        var errors: [Int] = []
        for byte in data.indices {
            try decoder.append(data[byte...byte])
            guard let preview = try decoder.preview()?.pixels else { continue }
            errors.append(zip(preview.samples, whole.samples).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) })
        }
        #expect(errors.count > 10)
        #expect(errors.last == 0)
        // The error decreases on the whole, but not with each pixel, and is small long before the end.
        #expect(errors[errors.count / 2] * 10 < errors[0])
    }

    @Test func `a header over the limits is refused at once`() throws {
        let decoder = try Self.decoder(DecodeOptions(limits: DecodingLimits(maximumPixels: 1_000)))
        let data = try SampleFiles.smooth(.png)
        let error = #expect(throws: CodingError.self) { try decoder.append(data.prefix(40)) }
        #expect(error?.code == .tooManyPixels)
    }

    @Test func `too many bytes are refused`() throws {
        let data = try SampleFiles.smooth(.png)
        let decoder = try Self.decoder(DecodeOptions(limits: DecodingLimits(maximumEncodedBytes: data.count - 1)))
        let error = #expect(throws: CodingError.self) { try decoder.append(data) }
        #expect(error?.code == .tooManyBytes)
    }

    @Test func `an animation gives the frame that was asked for`() throws {
        let images = try (1...3).map { try PixelBuffer.noise(.rgb8, width: 9, height: 7, seed: $0) }
        let frames = images.map { AnimationContent.Frame(image: Image(pixels: $0), milliseconds: 50) }
        let data = try PNGCoder().encode(AnimationContent(frames: frames), as: .png, options: EncodeOptions())
        for (index, picture) in images.enumerated() {
            let decoder = try Self.decoder(DecodeOptions(frame: index))
            for byte in data.indices { try decoder.append(data[byte...byte]) }
            let pixels = try decoder.finish().image.pixels
            #expect(PNGReference.expanded(pixels) == PNGReference.expanded(picture), "frame \(index)")
            #expect(decoder.header?.animation.frameCount == 3)
        }
    }

    @Test func `what stands behind the pixels counts`() throws {
        var file = PNGFile(try SampleFiles.smooth(.png))
        file.chunks.insert(.init(type: "eXIf", body: SampleFiles.exif(orientation: 8)), at: file.chunks.count - 1)
        let decoder = try Self.decoder()
        for byte in file.data.indices { try decoder.append(file.data[byte...byte]) }
        #expect(try decoder.finish().image.orientation == .left)
        #expect(try PNGCoder().open(file.data).header.orientation == .left)
    }
}
