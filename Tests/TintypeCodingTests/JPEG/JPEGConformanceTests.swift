// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCoding
import TintypeConformanceSupport
import TintypeImage
import TintypeTestTraits

/// Compares every JPEG of the corpus with its manifest.
///
/// Prints the number of right, wrong and refused files for each folder.
@Suite(.computing, .enabled(if: Corpus.isRead), .timeLimit(.minutes(5))) struct JPEGConformanceTests {
    /// The files whose result differs from the manifest, each with the reason.
    private static let exceptions: [String: String] = [
        "jpeg-progressive/peacock.progressive.scan000.jpeg":
            "one scan only: libjpeg-turbo 2.1 smooths bare blocks in another way than 3, which made the manifest"
    ]

    private static let registry = CoderRegistry()

    private static func images(_ folder: String) -> [CorpusImage] {
        Corpus.images(in: folder) { $0.format == "jpeg" }
    }

    /// The result of decoding a file.
    private enum Outcome: Equatable {
        case right
        case wrong(String)
        case refused(CodingError.Code)
    }

    @Test(arguments: [
        "jpeg", "jpeg-progressive", "jpeg-cmyk", "jpeg-exotic", "jpeg-orientation", "jpeg-corrupt", "photos", "icc",
    ])
    func folder(_ folder: String) throws {
        var counts = (right: 0, wrong: 0, refused: 0)
        for image in Self.images(folder) {
            let outcome = try Self.outcome(of: image)
            switch outcome {
            case .right: counts.right += 1
            case .refused: counts.refused += 1
            case .wrong: counts.wrong += 1
            }
            let isExpected = Self.isExpected(outcome, image)
            let isException = Self.exceptions[image.path] != nil
            #expect(isExpected != isException, "\(image.path): \(image.expectation), \(outcome)")
        }
        print("conformance \(folder): \(counts.right) right, \(counts.wrong) wrong, \(counts.refused) refused")
    }

    /// A fifth of the default budget is enough for each file.
    @Test func `fuzz files are bounded`() throws {
        let limits = DecodingLimits(maximumPixels: 16_000_000, maximumWork: 200_000_000)
        for picture in Self.images("jpeg-fuzz") {
            let data = try picture.data
            for allowsTruncated in [false, true] {
                let options = DecodeOptions(limits: limits, allowsTruncated: allowsTruncated)
                do {
                    let decoder = try ImageDecoder(data, registry: Self.registry, limits: limits)
                    let image = try decoder.decode(options: options)
                    #expect((image.width, image.height) == decoder.header.uprightSize, "\(picture.path)")
                } catch let error as CodingError {
                    #expect(error.code != .tooMuchWork, "\(picture.path)")
                }
            }
        }
    }

    private static func isExpected(_ outcome: Outcome, _ picture: CorpusImage) -> Bool {
        switch (picture.expectation, outcome) {
        case (_, .wrong): picture.expectation == "any"
        case ("ok", _): outcome == .right
        case ("error", _): outcome != .right
        default: true
        }
    }

    private static func outcome(of picture: CorpusImage) throws -> Outcome {
        let data = try picture.data
        do {
            let decoder = try ImageDecoder(data, registry: self.registry)
            if let difference = self.difference(decoder.header, picture) { return .wrong(difference) }
            // The references were made without colour management.
            let options = DecodeOptions(allowsTruncated: false, color: .ignore)
            let decoded = try decoder.decodeStored(options: options)
            if picture.expectation == "error" { return .wrong("decoded") }
            return self.difference(decoded.image.pixels, picture).map { .wrong($0) } ?? .right
        } catch let error as CodingError {
            return .refused(error.code)
        }
    }

    private static func difference(_ header: ImageHeader, _ picture: CorpusImage) -> String? {
        if let size = picture.size, size != (header.pixelWidth, header.pixelHeight) { return "size" }
        if let size = picture.displayedSize, size != header.uprightSize { return "upright size" }
        let orientation = picture.orientation.map { (1...8).contains($0) ? $0 : 1 } ?? 1
        if Int(header.orientation.rawValue) != orientation { return "orientation \(header.orientation)" }
        if let hasProfile = picture.hasProfile, hasProfile != (header.colorProfile != nil) { return "profile" }
        return nil
    }

    private static func difference(_ pixels: PixelBuffer, _ picture: CorpusImage) -> String? {
        guard picture.mean.count == 3 else { return nil }
        let means = PixelMeasure.means(pixels)
        let mean = zip(means.whole, picture.mean).map { abs($0 - $1) }.max() ?? 0
        let cell = zip(means.cells, picture.thumbnail).map { abs($0 - Double($1)) }.max() ?? 0
        let tolerance = max(pixels.width, pixels.height) < 64 ? 8.5 : 3.5
        if mean > 1 || cell > tolerance { return "pixels: mean \(mean), cell \(cell)" }
        return nil
    }
}
