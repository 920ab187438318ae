import FoundationEssentials
import Testing
import TintypeCoding
import TintypeImage

/// Decodes real files and compares with what reference decoders made of them.
@Suite(.enabled(if: Corpus.isRead)) struct CorpusDecodingTests {
    private let registry = CoderRegistry()

    @Test(arguments: Corpus.pictures(in: "jpeg")) func jpeg(_ picture: CorpusPicture) throws { try self.check(picture) }

    @Test(arguments: Corpus.pictures(in: "jpeg-progressive")) func jpegProgressive(_ picture: CorpusPicture) throws {
        try self.check(picture)
    }

    @Test(
        arguments: Corpus.pictures(in: "jpeg-cmyk") { $0.hasProfile == false && $0.reference.hasSuffix("naive-cmyk") }
    )
    func jpegCMYK(_ picture: CorpusPicture) throws { try self.check(picture) }

    @Test(arguments: Corpus.pictures(in: "jpeg-orientation")) func jpegOrientation(_ picture: CorpusPicture) throws {
        try self.check(picture)
    }

    @Test(arguments: Corpus.pictures(in: "png")) func png(_ picture: CorpusPicture) throws { try self.check(picture) }

    @Test(arguments: Corpus.pictures(in: "png-orientation")) func pngOrientation(_ picture: CorpusPicture) throws {
        try self.check(picture)
    }

    @Test(arguments: Corpus.pictures(in: "pngsuite")) func pngsuite(_ picture: CorpusPicture) throws {
        try self.check(picture)
    }

    @Test(arguments: Corpus.pictures(in: "webp")) func webp(_ picture: CorpusPicture) throws { try self.check(picture) }

    @Test(arguments: Corpus.pictures(in: "webp-vectors")) func webpVectors(_ picture: CorpusPicture) throws {
        try self.check(picture)
    }

    @Test(arguments: Corpus.pictures(in: "webp-orientation")) func webpOrientation(_ picture: CorpusPicture) throws {
        try self.check(picture)
    }

    @Test(arguments: Corpus.pictures(in: "webp-anim")) func webpAnimation(_ picture: CorpusPicture) throws {
        try self.check(picture)
    }

    @Test(arguments: Corpus.pictures(in: "photos")) func photos(_ picture: CorpusPicture) throws {
        try self.check(picture)
    }

    @Test(arguments: Corpus.pictures(in: "jpeg-corrupt", "png-corrupt", "webp-corrupt") { $0.expectation == "ok" })
    func whatIsOnlyALittleDamaged(_ picture: CorpusPicture) throws { try self.check(picture) }

    private func check(_ picture: CorpusPicture) throws {
        guard CorpusExceptions.isListed(picture) else { return try self.compare(picture) }
        // Intermittent, because a reason may be a library's version.
        withKnownIssue("\(CorpusExceptions.reasons[picture.path] ?? "")", isIntermittent: true) {
            try self.compare(picture)
        }
    }

    private func compare(_ picture: CorpusPicture) throws {
        let data = try picture.data
        if picture.expectation == "error" {
            #expect(throws: CodingError.self) { try ImageDecoder(data, registry: self.registry).decode() }
            return
        }
        let decoder = try ImageDecoder(data, registry: self.registry)
        let size = try #require(picture.size)
        #expect((decoder.header.pixelWidth, decoder.header.pixelHeight) == size)
        #expect(decoder.header.format.name == picture.format)
        #expect(decoder.header.animation.frameCount == picture.frameCount)
        if let loopCount = picture.loopCount { #expect(decoder.header.animation.loopCount == loopCount) }
        if let orientation = picture.orientation {
            // Values outside 1 to 8 count as 1.
            #expect(Int(decoder.header.orientation.rawValue) == ((1...8).contains(orientation) ? orientation : 1))
        }
        if picture.hasAlpha == true { #expect(decoder.header.hasAlpha) }
        let stored = try decoder.decodeStored()
        #expect((stored.image.width, stored.image.height) == size)
        // The canvas of an animation may show through.
        #expect(stored.image.hasAlpha == (decoder.header.hasAlpha || decoder.header.animation.frameCount > 1))
        self.comparePixels(stored.image.pixels, to: picture)
        let upright = try stored.image.upright()
        #expect((upright.width, upright.height) == (try #require(picture.displayedSize)))
    }

    private func comparePixels(_ pixels: PixelBuffer, to picture: CorpusPicture) {
        if picture.isExact {
            #expect(PixelMeasure.digest(pixels) == picture.digest)
            return
        }
        // What the corpus allows for another inverse transform or upsampler.
        let tolerance = max(pixels.width, pixels.height) < 64 ? 8.5 : 3.5
        let (cells, whole) = PixelMeasure.means(pixels)
        let worst = zip(cells, picture.thumbnail).map { abs($0 - Double($1)) }.max() ?? .infinity
        #expect(worst <= tolerance)
        #expect(zip(whole, picture.mean).allSatisfy { abs($0 - $1) <= 1 }, "\(whole) instead of \(picture.mean)")
    }
}
