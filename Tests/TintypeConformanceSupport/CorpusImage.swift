// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Glibc

/// A line of the corpus manifest, whose columns the corpus' own README explains.
public struct CorpusImage: Sendable, CustomStringConvertible {
    /// The path within the corpus.
    public let path: String
    /// The format as the manifest names it.
    public let format: String
    /// The expected result: `ok`, `error`, `partial`, `either`, `any` or `limit`.
    public let expectation: String
    /// The stored size.
    public let size: (width: Int, height: Int)?
    /// The upright size.
    public let displayedSize: (width: Int, height: Int)?
    /// The number of frames of an animation.
    public let frameCount: Int?
    /// The stored loop count.
    public let loopCount: Int?
    /// The stored EXIF orientation, even if it is invalid.
    public let orientation: Int?
    /// Whether a pixel of the first frame is not opaque.
    public let hasAlpha: Bool?
    /// Whether the image has a colour profile.
    public let hasProfile: Bool?
    /// Whether every sample must be equal to the reference.
    public let isExact: Bool
    /// The SHA-256 of the stored RGBA pixels of frame 0.
    public let digest: String
    /// The same digest, with the colours of transparent pixels set to 0.
    public let visibleDigest: String
    /// The number of bits in a stored sample.
    public let bitDepth: Int?
    /// The mean of red, green and blue times alpha.
    public let mean: [Double]
    /// The means of 16 by 16 cells.
    public let thumbnail: [UInt8]
    /// The program that created the reference.
    public let reference: String

    init?(_ columns: [Data]) {
        guard columns.count >= 22 else { return nil }
        let texts = columns.map { String(decoding: $0, as: UTF8.self) }
        self.path = texts[0]
        self.format = texts[2]
        self.expectation = texts[3]
        self.size = Self.size(texts[4], texts[5])
        self.displayedSize = Self.size(texts[6], texts[7])
        self.frameCount = Int(texts[8])
        self.loopCount = Int(texts[9])
        self.hasAlpha = Self.flag(texts[10])
        self.orientation = Int(texts[11])
        self.hasProfile = Self.flag(texts[12])
        self.isExact = texts[15] == "exact"
        self.digest = texts[16]
        self.visibleDigest = texts[17]
        self.bitDepth = Int(texts[13])
        self.mean = texts[19].split(separator: ",").compactMap { Double($0) }
        self.thumbnail = Self.bytes(columns[20])
        self.reference = texts[21]
    }

    /// The folder within the corpus.
    public var folder: String { String(self.path.prefix { $0 != "/" }) }

    public var description: String { self.path }

    /// The encoded bytes.
    public var data: Data {
        get throws {
            let file = try Corpus.url(of: self.path)
            // Foundation leaks its buffer when it reads an empty file.
            var status = stat()
            stat(file.path, &status)
            return status.st_size == 0 ? Data() : try Data(contentsOf: file)
        }
    }

    private static func size(_ width: String, _ height: String) -> (width: Int, height: Int)? {
        guard let width = Int(width), let height = Int(height) else { return nil }
        return (width, height)
    }

    private static func flag(_ text: String) -> Bool? {
        text == "y" ? true : text == "n" ? false : nil
    }

    private static func bytes(_ hexadecimal: Data) -> [UInt8] {
        let digits = hexadecimal.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
