import FoundationEssentials
import TestSupport
import Testing

/// One line of the corpus manifest; the corpus' own README explains the columns.
struct CorpusPicture: Sendable, CustomTestStringConvertible {
    let path: String
    let format: String
    let expectation: String
    /// As stored.
    let size: (width: Int, height: Int)?
    /// Upright.
    let displayedSize: (width: Int, height: Int)?
    let frameCount: Int?
    let loopCount: Int?
    let orientation: Int?
    let hasAlpha: Bool?
    let hasProfile: Bool?
    let isExact: Bool
    let digest: String
    let mean: [Double]
    let thumbnail: [UInt8]
    let reference: String

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
        self.mean = texts[19].split(separator: ",").compactMap { Double($0) }
        self.thumbnail = Self.bytes(columns[20])
        self.reference = texts[21]
    }

    var folder: String { String(self.path.prefix { $0 != "/" }) }

    var testDescription: String { self.path }

    /// The encoded bytes.
    var data: Data {
        get throws {
            let folder = try #require(Fixtures.corpus)
            return try Data(contentsOf: folder.appending(path: self.path))
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
