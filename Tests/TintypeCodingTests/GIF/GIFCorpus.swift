// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto
import FoundationEssentials
import Testing
import TintypeCoding
import TintypeImage
import TintypeTestSupport

/// The GIF files of the large corpus and their reference data.
enum GIFCorpus {
    /// A line of the manifest, whose columns the corpus' own README explains.
    struct File: Sendable, CustomTestStringConvertible {
        let path: String
        let expectation: String
        let width: Int?
        let height: Int?
        let frameCount: Int?
        let loopCount: Int?
        let hasAlpha: Bool
        let digest: String
        /// The composited frames: the stored duration in milliseconds, and the pixels' digest.
        let frames: [(milliseconds: Int, digest: String)]

        var folder: String { String(self.path.prefix { $0 != "/" }) }
        var testDescription: String { self.path }

        var data: Data {
            get throws {
                let folder = try #require(Fixtures.corpus)
                return try Data(contentsOf: folder.appending(path: self.path))
            }
        }
    }

    static let files: [File] = {
        var frames: [String: [(Int, String)]] = [:]
        for columns in Self.rows("frames.tsv") where columns.count >= 4 {
            guard let milliseconds = Int(columns[2]) else { continue }
            frames[columns[0], default: []].append((milliseconds, columns[3]))
        }
        return Self.rows("manifest.tsv").filter { $0.count >= 18 && $0[2] == "gif" }.map { columns in
            File(
                path: columns[0],
                expectation: columns[3],
                width: Int(columns[4]),
                height: Int(columns[5]),
                frameCount: Int(columns[8]),
                loopCount: Int(columns[9]),
                hasAlpha: columns[10] == "y",
                digest: columns[17],
                frames: frames[columns[0]] ?? []
            )
        }
    }()

    static func files(in folder: String) -> [File] {
        self.files.filter { $0.folder == folder }
    }

    private static func rows(_ name: String) -> [[String]] {
        guard let folder = Fixtures.corpus, let table = try? Data(contentsOf: folder.appending(path: name)) else {
            return []
        }
        return table.split(separator: UInt8(ascii: "\n")).dropFirst().map { line in
            line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
                .map { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// Returns the SHA-256 of straight RGBA rows without padding, with transparent pixels set to zero.
    static func digest(_ pixels: [UInt32]) -> String {
        let pixels = pixels.map { $0 >> 24 == 0 ? 0 : $0 }
        var digest = [UInt8](repeating: 0, count: 32)
        pixels.withUnsafeBytes { _ = SHA256($0.bindMemory(to: UInt8.self).baseAddress, $0.count, &digest) }
        return digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Returns the pixels of a buffer, with red in the lowest byte.
    static func pixels(of buffer: PixelBuffer) -> [UInt32] {
        let plane = buffer.layout.planes[0]
        let channels = buffer.format.channelCount
        return buffer.withBytes { bytes in
            var pixels = [UInt32](repeating: 0, count: buffer.width * buffer.height)
            for row in 0..<buffer.height {
                for column in 0..<buffer.width {
                    let start = row * plane.bytesPerRow + column * channels
                    var pixel: UInt32 = channels == 3 ? 0xFF00_0000 : 0
                    for channel in 0..<channels {
                        let sample = bytes.unsafeLoad(fromByteOffset: start + channel, as: UInt8.self)
                        pixel |= UInt32(sample) << UInt32(channel * 8)
                    }
                    pixels[row * buffer.width + column] = pixel
                }
            }
            return pixels
        }
    }

    /// Returns the canvas after each frame, composited slowly and literally as the specification says.
    static func composite(_ reader: any FrameReader) throws -> [[UInt32]] {
        var canvas = [UInt32](repeating: 0, count: reader.canvas.width * reader.canvas.height)
        return try reader.frames.indices.map { index in
            let frame = reader.frames[index]
            let pixels = Self.pixels(of: try reader.pixels(of: index))
            let before = canvas
            for row in 0..<frame.height where frame.top + row < reader.canvas.height {
                for column in 0..<frame.width where frame.left + column < reader.canvas.width {
                    let pixel = pixels[row * frame.width + column]
                    let place = (frame.top + row) * reader.canvas.width + frame.left + column
                    if frame.blend == .source || pixel >> 24 != 0 { canvas[place] = pixel }
                }
            }
            let drawn = canvas
            switch frame.disposal {
            case .keep: break
            case .previous: canvas = before
            case .background:
                for row in frame.top..<min(frame.top + frame.height, reader.canvas.height) {
                    for column in frame.left..<min(frame.left + frame.width, reader.canvas.width) {
                        canvas[row * reader.canvas.width + column] = 0
                    }
                }
            }
            return drawn
        }
    }
}
