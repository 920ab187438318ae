import CDeflate
import FoundationEssentials

/// Puts the chunks of a PNG together.
struct PNGWriter {
    /// The file so far.
    private(set) var data = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])

    /// Adds a chunk of which the content comes in pieces.
    mutating func append(_ kind: PNGChunk.Kind, _ pieces: Data...) {
        let start = self.data.count + 4
        self.data.append(bigEndian: UInt32(pieces.reduce(0) { $0 + $1.count }))
        self.data.append(bigEndian: kind.rawValue)
        for piece in pieces { self.data.append(piece) }
        let checksum = self.data.withUnsafeBytes { bytes in
            libdeflate_crc32(0, bytes.baseAddress.map { $0 + start }, bytes.count - start)
        }
        self.data.append(bigEndian: checksum)
    }

    /// Adds the blocks of metadata that there are.
    mutating func append(_ metadata: EncodeOptions.Metadata) throws(CodingError) {
        if let profile = metadata.colorProfile {
            // A name is required; the profile has its own.
            self.append(.colorProfile, Data("ICC profile\0\0".utf8), try PNGDeflater(level: 9).deflated(profile))
        }
        if let exif = metadata.exif { self.append(.exif, exif) }
        if let xmp = metadata.xmp {
            // Keyword, not compressed, no language, no translated keyword (section 11.3.3.4).
            self.append(.text, Data("XML:com.adobe.xmp\0\0\0\0\0".utf8), xmp)
        }
    }
}

extension Data {
    /// Adds a number, its highest byte first.
    mutating func append<Number: FixedWidthInteger>(bigEndian number: Number) {
        Swift.withUnsafeBytes(of: number.bigEndian) { self.append(contentsOf: $0) }
    }
}
