// SPDX-License-Identifier: Apache-2.0

import TintypeCoding
import TintypeImage

/// A check that decodes a corpus file and compares it with its manifest.
public struct ConformanceCheck: Sendable {
    private let registry = CoderRegistry()
    /// The composited frames by path: the duration in milliseconds, the digest, and whether the digest is exact.
    private let frames: [String: [(milliseconds: Int, digest: String, isExact: Bool)]]
    /// The means after conversion to sRGB, by path.
    private let colors: [String: [Double]]

    /// Reads the tables of the corpus.
    public init() {
        self.frames = Dictionary(grouping: Corpus.table("frames.tsv").filter { $0.count >= 5 }) { $0[0] }
            .mapValues { lines in lines.map { (Int($0[2]) ?? 0, $0[3], $0[4] == "exact") } }
        self.colors = Dictionary(
            Corpus.table("icc.tsv").filter { $0.count >= 4 && $0[3].contains(",") }.map { line in
                (line[0], line[3].split(separator: ",").compactMap { Double($0) })
            },
            uniquingKeysWith: { first, _ in first }
        )
    }

    /// Returns the verdict on one file.
    public func judge(_ picture: CorpusImage) throws -> Verdict {
        let data = try picture.data
        do {
            let decoder = try ImageDecoder(data, registry: self.registry)
            let stored = try decoder.decodeStored(options: DecodeOptions(color: .ignore)).image
            return try self.judge(picture, decoder, stored)
        } catch let error as CodingError {
            switch picture.expectation {
            case "ok": return .wrong("\(error)")
            case "limit" where ![.tooManyPixels, .sideTooLong, .tooManyBytes, .corrupt].contains(error.code):
                return .wrong("\(error)")
            default: return .refused
            }
        }
    }

    private func judge(_ picture: CorpusImage, _ decoder: ImageDecoder, _ stored: Image) throws -> Verdict {
        switch picture.expectation {
        case "error", "limit": return .wrong("an image came out of it")
        // A damaged image has no single correct result.
        case "any": return .right
        case "partial", "either":
            if let size = picture.size, (stored.width, stored.height) != size {
                return .wrong("\(stored.width)x\(stored.height) is not its size")
            }
            var faults = self.headerFaults(picture, decoder.header)
            if !picture.isExact || picture.digest != "-" { faults += self.pixelFaults(picture, stored) }
            return faults.isEmpty ? .right : .wrong(faults.joined(separator: "; "))
        default: break
        }
        // The manifest has the default image of an animation, which need not be one of the frames.
        let isAnimated = !decoder.header.animation.durations.isEmpty && self.frames[picture.path] != nil
        var faults = self.headerFaults(picture, decoder.header)
        if !isAnimated { faults += self.pixelFaults(picture, stored) }
        faults += try self.frameFaults(picture, decoder)
        faults += try self.colorFaults(picture, decoder)
        return faults.isEmpty ? .right : .wrong(faults.joined(separator: "; "))
    }

    private func headerFaults(_ picture: CorpusImage, _ header: ImageHeader) -> [String] {
        var faults: [String] = []
        func check<Value: Equatable>(_ what: String, _ value: Value, _ expected: Value?) {
            if let expected, value != expected { faults.append("\(what) is \(value) and not \(expected)") }
        }
        check("the format", header.format.name, picture.format)
        check("the width", header.pixelWidth, picture.size?.width)
        check("the height", header.pixelHeight, picture.size?.height)
        check("the upright width", header.uprightSize.width, picture.displayedSize?.width)
        check("the upright height", header.uprightSize.height, picture.displayedSize?.height)
        check("the frame count", header.animation.frameCount, picture.frameCount)
        check("the loop count", header.animation.loopCount, picture.loopCount ?? 1)
        check("the bit depth", header.bitDepth, picture.bitDepth)
        // No value, and values outside 1 to 8, count as 1.
        let orientation = picture.orientation.map { (1...8).contains($0) ? $0 : 1 } ?? 1
        check("the orientation", Int(header.orientation.rawValue), orientation)
        if picture.hasAlpha == true { check("alpha", header.hasAlpha, true) }
        if CorpusExceptions.profiles[picture.path] == nil {
            check("a colour profile", header.colorProfile != nil, picture.hasProfile)
        }
        return faults
    }

    private func pixelFaults(_ picture: CorpusImage, _ image: Image) -> [String] {
        if let hasAlpha = picture.hasAlpha, image.hasTransparency != hasAlpha {
            return ["transparency is \(image.hasTransparency) and not \(hasAlpha)"]
        }
        if picture.isExact {
            // Transparent pixels have no colour to compare.
            let digest = PixelMeasure.digest(image.pixels, clearsHidden: true)
            // The manifest has the default image of an APNG, which need not be one of the frames.
            let expected = self.frames[picture.path]?.first?.digest ?? picture.visibleDigest
            return digest == expected ? [] : ["the pixels differ"]
        }
        guard picture.mean.count == 3, picture.thumbnail.count == 768 else { return [] }
        // The tolerance of the corpus for another inverse transform or upsampler.
        let tolerance = max(image.width, image.height) < 64 ? 8.5 : 3.5
        let (cells, whole) = PixelMeasure.means(image.pixels)
        let worst = zip(cells, picture.thumbnail).map { abs($0 - Double($1)) }.max() ?? 0
        let mean = zip(whole, picture.mean).map { abs($0 - $1) }.max() ?? 0
        return worst <= tolerance && mean <= 1 ? [] : ["the pixels are off by \(worst), their mean by \(mean)"]
    }

    private func frameFaults(_ picture: CorpusImage, _ decoder: ImageDecoder) throws -> [String] {
        guard let frames = self.frames[picture.path], !decoder.header.animation.durations.isEmpty else { return [] }
        let durations = decoder.header.animation.durations
        // Frames with less than 11 ms are shown for 100 ms.
        let expected = frames.map { $0.milliseconds < 11 ? 100 : $0.milliseconds }
        guard durations == expected else { return ["the durations are \(durations) and not \(expected)"] }
        guard let compositor = try decoder.makeCompositor() else { return ["there are no frames"] }
        if let last = frames.last, last.isExact {
            let pixels = try decoder.decode(options: DecodeOptions(frame: frames.count - 1)).pixels
            if PixelMeasure.digest(pixels, clearsHidden: true) != last.digest {
                return ["the last frame alone differs"]
            }
        }
        return try frames.enumerated().compactMap { index, frame in
            let pixels = try compositor.frame(at: index)
            let isRight = !frame.isExact || PixelMeasure.digest(pixels, clearsHidden: true) == frame.digest
            return isRight ? nil : "frame \(index) differs"
        }
    }

    private func colorFaults(_ picture: CorpusImage, _ decoder: ImageDecoder) throws -> [String] {
        guard let expected = self.colors[picture.path], expected.count == 3 else { return [] }
        let converted = try decoder.decode()
        let (_, mean) = PixelMeasure.means(converted.pixels)
        let worst = zip(mean, expected).map { abs($0 - $1) }.max() ?? 0
        return worst <= 2 ? [] : ["the mean in sRGB is off by \(worst)"]
    }
}
