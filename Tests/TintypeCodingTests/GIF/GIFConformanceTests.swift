// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCoding
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// Compares every GIF of the corpus with its references.
@Suite(.computing, .enabled(if: Fixtures.corpus != nil), .timeLimit(.minutes(5))) struct GIFConformanceTests {
    private let registry = CoderRegistry()

    @Test(arguments: GIFCorpus.files(in: "gif")) func `an ordinary file has the pixels of its reference`(
        _ file: GIFCorpus.File
    ) throws { try self.check(file) }

    @Test(arguments: GIFCorpus.files(in: "gif-pygif")) func `a file of the pygif suite has the pixels of its reference`(
        _ file: GIFCorpus.File
    ) throws {
        try self.check(file)
    }

    @Test(arguments: GIFCorpus.files(in: "gif-corrupt"))
    func `a damaged file is decoded or refused as its reference says`(_ file: GIFCorpus.File) throws {
        try self.check(file)
    }

    @Test(arguments: GIFCorpus.files(in: "bombs")) func `a bomb takes little memory`(_ file: GIFCorpus.File) throws {
        let (_, peak) = try AllocatedMemory.peak { try self.check(file) }
        #expect(peak < 4 << 20)
    }

    /// Decodes damaged files as far as possible, with the same result as the reference decoder.
    @Test(arguments: GIFCorpus.files.filter { ["partial", "either"].contains($0.expectation) })
    func `as much of a damaged file is decoded as the reference decodes`(_ file: GIFCorpus.File) throws {
        let data = try file.data
        let options = DecodeOptions(allowsTruncated: true)
        let image: Image
        do {
            image = try ImageDecoder(data, registry: self.registry).decode(options: options)
        } catch let error as CodingError {
            // These files have no pixels: one has a screen without width, and one ends before its first image.
            let empty = ["gif-corrupt/zero_width.gif", "gif-pygif/image-zero-height.gif"]
            #expect(empty.contains(file.path), "\(error)")
            return
        }
        #expect(GIFCorpus.digest(GIFCorpus.pixels(of: image.pixels)) == file.digest)
        let encoded = try GIFCoder().open(data)
        guard let reader = try encoded.frameReader(options: options) else { return }
        #expect(try GIFCorpus.composite(reader).map(GIFCorpus.digest) == file.frames.map(\.digest))
    }

    private func check(_ file: GIFCorpus.File) throws {
        switch file.expectation {
        case "ok": try self.compare(file)
        case "limit": #expect(throws: CodingError.self) { try ImageDecoder(try file.data, registry: self.registry) }
        case "error":
            #expect(throws: CodingError.self) {
                try ImageDecoder(try file.data, registry: self.registry).decode()
            }
        default:
            do {
                try self.compare(file)
            } catch is CodingError {}
        }
    }

    private func compare(_ file: GIFCorpus.File) throws {
        let data = try file.data
        let decoder = try ImageDecoder(data, registry: self.registry)
        let header = decoder.header
        #expect(header.pixelWidth == file.width)
        #expect(header.pixelHeight == file.height)
        #expect(header.bitDepth == 8)
        #expect(header.animation.loopCount == file.loopCount ?? 1)
        let image = try decoder.decode()
        if file.hasAlpha { #expect(header.hasAlpha) }
        #expect(GIFCorpus.digest(GIFCorpus.pixels(of: image.pixels)) == file.digest)
        #expect(header.animation.frameCount == file.frameCount)
        #expect(image.hasAlpha == (header.hasAlpha || header.animation.frameCount > 1))
        guard let reader = try decoder.frameReader() else {
            #expect(file.frameCount == 1)
            return
        }
        #expect(header.animation.durations == file.frames.map { $0.milliseconds < 11 ? 100 : $0.milliseconds })
        #expect(try GIFCorpus.composite(reader).map(GIFCorpus.digest) == file.frames.map(\.digest))
        // The shared compositor agrees with the simple one.
        let last = try decoder.decode(options: DecodeOptions(frame: reader.frames.count - 1))
        #expect(GIFCorpus.digest(GIFCorpus.pixels(of: last.pixels)) == file.frames.last?.digest)
    }
}
