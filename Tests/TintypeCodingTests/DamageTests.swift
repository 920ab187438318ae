// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// Bytes that are not an image, and images with changed bytes, lead to errors at most and never to a crash.
@Suite(.computing, .timeLimit(.minutes(10))) struct DamageTests {
    private static let limits = DecodingLimits(maximumPixels: 10_000)

    @Test(arguments: [
        ("", "no bytes"), ("\u{7F}", "no known signature"), ("<!DOCTYPE html><p>Not found", "HTML page"),
        ("  \n<HTML><body>", "HTML page"), ("{\"error\": 404}", "JSON"), (" [1, 2]", "JSON"),
        ("plain text", "no known signature"),
    ])
    func `what is no image is named`(text: String, reason: String) {
        let error = #expect(throws: CodingError.self) { try SampleFiles.decode(Data(text.utf8)) }
        #expect(error?.code == .notAnImage)
        #expect(error?.message.contains(reason) == true)
    }

    @Test(arguments: 0...255) func `one byte is no image`(byte: UInt8) {
        let error = #expect(throws: CodingError.self) { try SampleFiles.decode(Data([byte])) }
        #expect(error?.code == .notAnImage)
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp]) func `coders refuse what is not theirs`(
        format: ImageFormat
    ) throws {
        let coder = try SampleFiles.registry.coder(encoding: format)
        for other in [Data(), Data([0]), Data("<html>".utf8), try SampleFiles.smooth(format == .png ? .jpeg : .png)] {
            #expect(throws: CodingError.self) { try coder.open(other) }
        }
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp], [PixelFormat.gray8, .rgb8, .rgba8])
    func `changed bytes never crash`(format: ImageFormat, pixelFormat: PixelFormat) throws {
        let original = try SampleFiles.encode(try .noise(pixelFormat, width: 17, height: 13), as: format)
        var generator = SeededGenerator(seed: 11)
        for round in 0..<1_000 {
            var data = original
            for _ in 0...round % 4 {
                data[Int.random(in: 0..<data.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            if round % 5 == 0 { data = data.prefix(Int.random(in: 0...data.count, using: &generator)) }
            try Self.decode(data, allowsTruncated: round % 2 == 0)
        }
    }

    /// With correct checksums, the damage reaches the inflater and the filters.
    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8])
    func `changed chunks of APNG never crash`(pixelFormat: PixelFormat) throws {
        let original = PNGFile(try SampleFiles.encode(try .noise(pixelFormat, width: 17, height: 13), as: .png))
        var generator = SeededGenerator(seed: 12)
        for round in 0..<1_000 {
            var file = original
            // Change the pixels most of the time, and the header sometimes.
            let index = round % 4 == 0 ? 0 : 1
            let position = Int.random(in: 0..<file.chunks[index].body.count, using: &generator)
            file.chunks[index].body[position] = .random(in: 0...255, using: &generator)
            if round % 3 == 0 { file.insert(["tRNS", "PLTE", "iCCP", "eXIf", "acTL"][round % 5], [0, 1, 2, 3, 4, 5]) }
            try Self.decode(file.data, allowsTruncated: round % 2 == 0)
        }
    }

    /// Many tests rely on `PNGFile` to build damaged files.
    @Test func `chunks of a damaged file are read as far as they go`() throws {
        let data = try SampleFiles.smooth(.png, width: 6, height: 4)
        let whole = PNGFile(data).chunks
        for count in 0...data.count {
            let chunks = PNGFile(data.prefix(count)).chunks
            #expect(chunks.map(\.type) == whole.prefix(chunks.count).map(\.type))
        }
        var lying = data
        lying.replaceSubrange(8..<12, with: [0xFF, 0xFF, 0xFF, 0xFF])
        #expect(PNGFile(lying).chunks.isEmpty)
    }

    /// Decodes and accepts errors, but expects a complete image if there is no error.
    private static func decode(_ data: Data, allowsTruncated: Bool) throws {
        do {
            let decoder = try ImageDecoder(data, registry: SampleFiles.registry, limits: self.limits)
            let image = try decoder.decode(
                options: DecodeOptions(limits: self.limits, allowsTruncated: allowsTruncated)
            )
            #expect((image.width, image.height) == decoder.header.uprightSize)
        } catch let error as CodingError {
            #expect(!error.message.isEmpty)
        }
    }
}
