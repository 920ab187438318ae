// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCoding
import TintypeConformanceSupport
import TintypeImage
import TintypeTestTraits

/// Real files that are damaged or hostile.
@Suite(.computing, .enabled(if: Corpus.isRead), .timeLimit(.minutes(10))) struct CorpusDamageTests {
    private let registry = CoderRegistry()

    @Test(
        arguments: Corpus.images(in: "jpeg-corrupt", "png-corrupt", "webp-corrupt", "apng-corrupt", "gif-corrupt") {
            $0.expectation == "error"
        }
    )
    func `what no decoder reads is an error`(_ picture: CorpusImage) throws {
        let data = try picture.data
        let error = #expect(throws: CodingError.self) { try ImageDecoder(data, registry: self.registry).decode() }
        #expect(error?.message.hasSuffix(".") == true)
    }

    @Test(
        arguments: Corpus.images(in: "bombs", "png-corrupt", "webp-corrupt", "gif-corrupt", "png-fuzz") {
            $0.expectation == "limit"
        }
    )
    func `what is too large is refused`(_ picture: CorpusImage) throws {
        let data = try picture.data
        #expect(throws: CodingError.self) { try ImageDecoder(data, registry: self.registry) }
    }

    @Test(arguments: ["bombs/max_size.jpg", "bombs/16383x16383.png"])
    func `a bomb is named by its limit`(path: String) throws {
        let image = try #require(Corpus.images.first { $0.path == path })
        let data = try image.data
        let error = #expect(throws: CodingError.self) { try ImageDecoder(data, registry: self.registry) }
        #expect(error?.code == .sideTooLong || error?.code == .tooManyPixels)
    }

    /// The decoder skips text chunks that inflate to gigabytes.
    @Test func `a bomb in a text chunk costs nothing`() async throws {
        let picture = try #require(Corpus.images.first { $0.path == "bombs/png_decompression_dos.png" })
        let image = try ImageDecoder(try picture.data, registry: self.registry).decode()
        #expect(PixelMeasure.digest(image.pixels) == picture.digest)
    }

    @Test(arguments: [
        "jpeg-corrupt", "png-corrupt", "webp-corrupt", "apng-corrupt", "gif-corrupt", "jpeg-exotic", "jpeg-fuzz",
        "png-fuzz",
    ])
    func `nothing crashes`(folder: String) throws {
        for picture in Corpus.images(in: folder) {
            let data = try picture.data
            for allowsTruncated in [false, true] {
                let limits = DecodingLimits(maximumPixels: 4_000_000)
                let options = DecodeOptions(limits: limits, allowsTruncated: allowsTruncated)
                guard let decoder = try? ImageDecoder(data, registry: self.registry, limits: limits) else { continue }
                guard let image = try? decoder.decode(options: options) else { continue }
                #expect((image.width, image.height) == decoder.header.uprightSize, "\(picture.path)")
            }
        }
    }

    @Test func `fuzzed JPEGs take a fifth of the permitted work`() throws {
        let limits = DecodingLimits(maximumPixels: 16_000_000, maximumWork: 200_000_000)
        for file in Corpus.images(in: "jpeg-fuzz") {
            let data = try file.data
            for allowsTruncated in [false, true] {
                let options = DecodeOptions(limits: limits, allowsTruncated: allowsTruncated)
                do {
                    let decoder = try ImageDecoder(data, registry: self.registry, limits: limits)
                    let image = try decoder.decode(options: options)
                    #expect((image.width, image.height) == decoder.header.uprightSize, "\(file.path)")
                } catch let error as CodingError {
                    #expect(error.code != .tooMuchWork, "\(file.path)")
                }
            }
        }
    }
}
