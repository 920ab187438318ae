// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The chunks of a PNG, which can be changed and written with correct checksums.
package struct PNGFile {
    package struct Chunk {
        package var type: String
        package var body: [UInt8]

        package init(type: String, body: [UInt8]) {
            self.type = type
            self.body = body
        }
    }

    package static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    package var chunks: [Chunk]

    package init(chunks: [Chunk]) {
        self.chunks = chunks
    }

    /// Reads the chunks of a file, up to the first incomplete one.
    package init(_ data: Data) {
        let bytes = Array(data)
        var chunks: [Chunk] = []
        var offset = 8
        while offset + 12 <= bytes.count {
            let length = bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
            guard length <= bytes.count - offset - 12 else { break }
            let type = String(decoding: bytes[offset + 4..<offset + 8], as: UTF8.self)
            chunks.append(Chunk(type: type, body: Array(bytes[offset + 8..<offset + 8 + length])))
            offset += 12 + length
        }
        self.chunks = chunks
    }

    /// Creates a file with only a header, which is enough to check limits.
    package init(declaring width: Int, _ height: Int) {
        let body = UInt32(width).bigEndianBytes + UInt32(height).bigEndianBytes + [8, 6, 0, 0, 0]
        self.init(chunks: [Chunk(type: "IHDR", body: body), Chunk(type: "IEND", body: [])])
    }

    package var data: Data {
        var data = Data(Self.signature)
        for chunk in self.chunks {
            let content = Array(chunk.type.utf8) + chunk.body
            data += UInt32(chunk.body.count).bigEndianBytes + content + Self.checksum(content).bigEndianBytes
        }
        return data
    }

    /// Inserts a chunk after the header.
    package mutating func insert(_ type: String, _ body: [UInt8]) {
        self.chunks.insert(Chunk(type: type, body: body), at: 1)
    }

    /// Returns the CRC-32 of a chunk's type and body.
    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~0) { self.table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] ^ ($0 >> 8) }
    }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { sum, _ in sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0xEDB8_8320 }
    }
}
