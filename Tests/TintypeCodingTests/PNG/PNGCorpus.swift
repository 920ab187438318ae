// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeConformanceSupport
import TintypeImage

/// The PNGs of the corpus and their expected results.
enum PNGCorpus {
    enum Outcome {
        case right
        /// The decoder threw an error, as expected.
        case refused
        case wrong(String)
    }

    struct Frame {
        let index: Int
        let milliseconds: Int
        let digest: String
        let isExact: Bool
    }

    /// The files whose result differs from the manifest, each with the reason.
    static let exceptions: [String: String] = [
        "png-corrupt/1ebd73c1d3fbc89782f29507364128fc.png":
            "its profile ends after 32,000 of 557,168 bytes, and is left out; the pixels are right"
    ]

    static func images(_ folder: String) -> [CorpusImage] {
        Corpus.images(in: folder) { $0.format == "png" }
    }

    static func outcome(of picture: CorpusImage) throws -> Outcome {
        let data = try picture.data
        do {
            let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
            if picture.expectation == "limit" { return .wrong("was not refused by a limit") }
            if self.exceptions[picture.path] == nil, let difference = self.difference(decoder.header, picture) {
                return .wrong(difference)
            }
            let image = try self.defaultImage(of: data, decoder)
            switch picture.expectation {
            case "error": return .wrong("there is an image, and should be none")
            case "partial" where picture.digest == "-": return .right
            default:
                guard PixelMeasure.digest(image.pixels) != picture.digest else { return .right }
                return .wrong("\(picture.expectation): the pixels differ")
            }
        } catch let error as CodingError {
            switch picture.expectation {
            case "ok": return .wrong(error.description)
            case "limit":
                // Some of these files declare a size that the specification does not allow.
                let isLimit = [.tooManyPixels, .sideTooLong, .tooManyBytes, .corrupt].contains(error.code)
                return isLimit ? .refused : .wrong(error.description)
            default: return .refused
            }
        }
    }

    /// Returns the image that a decoder without animations shows, which the manifest describes.
    ///
    /// Removes the chunks of the animation if this image is not one of the frames. The frames have a table of their
    /// own.
    private static func defaultImage(of data: Data, _ decoder: ImageDecoder) throws -> Image {
        let chunks = self.chunkTypes(of: data)
        guard let control = chunks.firstIndex(of: "fcTL"), let pixels = chunks.firstIndex(of: "IDAT"), control > pixels,
            chunks.contains("acTL")
        else { return try decoder.decodeStored().image }
        return try ImageDecoder(PNGReference.still(data), registry: SampleFiles.registry).decodeStored().image
    }

    /// Returns the frames of all animations with the path of their file.
    static func frames() throws -> [(path: String, frames: [Frame])] {
        var result: [(path: String, frames: [Frame])] = []
        for columns in Corpus.table("frames.tsv") where columns.count >= 5 && columns[0].hasPrefix("apng/") {
            let frame = Frame(
                index: try #require(Int(columns[1])),
                milliseconds: try #require(Int(columns[2])),
                digest: columns[3],
                isExact: columns[4] == "exact"
            )
            if result.last?.path != columns[0] { result.append((columns[0], [])) }
            result[result.count - 1].frames.append(frame)
        }
        return result
    }

    private static func chunkTypes(of data: Data) -> [String] {
        var types: [String] = []
        var offset = data.startIndex + 8
        while offset + 12 <= data.endIndex {
            let length = data[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
            types.append(String(decoding: data[offset + 4..<offset + 8], as: UTF8.self))
            offset += 12 + length
        }
        return types
    }

    private static func difference(_ header: ImageHeader, _ picture: CorpusImage) -> String? {
        guard picture.expectation == "ok" else { return nil }
        if let size = picture.size, (header.pixelWidth, header.pixelHeight) != size { return "the size differs" }
        if let count = picture.frameCount, header.animation.frameCount != count {
            return "there are \(header.animation.frameCount) frames instead of \(count)"
        }
        if let count = picture.loopCount, header.animation.loopCount != count {
            return "the loop count is \(header.animation.loopCount) instead of \(count)"
        }
        if picture.hasAlpha == true, !header.hasAlpha { return "the alpha was not announced" }
        if let hasProfile = picture.hasProfile, hasProfile != (header.colorProfile != nil) {
            return "there is \(hasProfile ? "a" : "no") colour profile"
        }
        if let bits = picture.bitDepth, bits != header.bitDepth { return "the bit depth differs" }
        let orientation = picture.orientation.map { (1...8).contains($0) ? $0 : 1 } ?? 1
        if Int(header.orientation.rawValue) != orientation { return "the orientation differs" }
        return nil
    }
}
