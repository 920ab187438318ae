// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeTestSupport

/// Small images of all kinds, created when they are needed.
enum Images {
    /// Returns a PNG, by default of 8 by 6 pixels.
    static func png(_ format: PixelFormat = .rgb8, width: Int = 8, height: Int = 6) throws -> Data {
        let pixels = try PixelBuffer.noise(format, width: width, height: height, seed: 1)
        return try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions())
    }

    /// Returns a PNG whose header declares a wrong size.
    static func png(declaring width: Int, _ height: Int) throws -> Data {
        var data = try self.png()
        let size =
            self.big16(width >> 16) + self.big16(width & 0xFFFF) + self.big16(height >> 16)
            + self.big16(height & 0xFFFF)
        data.replaceSubrange(16..<24, with: size)
        let checksum = self.crc32(data[12..<29])
        data.replaceSubrange(29..<33, with: self.big16(Int(checksum >> 16)) + self.big16(Int(checksum & 0xFFFF)))
        return data
    }

    /// Returns the checksum of W3C PNG, third edition, annex D.
    private static func crc32(_ bytes: some Sequence<UInt8>) -> UInt32 {
        ~bytes.reduce(UInt32.max) { checksum, byte in
            (0..<8).reduce(checksum ^ UInt32(byte)) { rest, _ in rest & 1 == 0 ? rest >> 1 : 0xEDB8_8320 ^ rest >> 1 }
        }
    }

    /// Returns a JPEG with a marker in its scan, after which the data is lost.
    static func damagedJPEG() throws -> Data {
        let pixels = try PixelBuffer.noise(.rgb8, width: 64, height: 64, seed: 1)
        var data = try JPEGCoder().encode(Image(pixels: pixels), as: .jpeg, options: EncodeOptions())
        let middle = data.count / 2
        data.replaceSubrange(middle...middle + 1, with: [0xFF, 0xE5])
        return data
    }

    /// Returns a JPEG, optionally with an EXIF orientation or an ICC profile.
    static func jpeg(
        width: Int = 16,
        height: Int = 8,
        orientation: UInt8? = nil,
        profile: Data? = nil
    ) throws -> Data {
        let pixels = try PixelBuffer.smooth(.rgb8, width: width, height: height)
        var data = try JPEGCoder().encode(Image(pixels: pixels), as: .jpeg, options: EncodeOptions())
        let start = data.startIndex + 2
        if let profile {
            let body = Data("ICC_PROFILE\0".utf8) + [1, 1] + profile
            data.insert(contentsOf: [0xFF, 0xE2] + self.big16(body.count + 2) + body, at: start)
        }
        if let orientation {
            // A TIFF directory with one entry: 0x0112, SHORT, 1 value.
            let tiff: [UInt8] = [
                0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0,
            ]
            let body = Array("Exif\0\0".utf8) + tiff
            data.insert(contentsOf: [0xFF, 0xE1] + self.big16(body.count + 2) + body, at: start)
        }
        return data
    }

    /// Returns an animated WebP of 8 by 6 pixels with durations in milliseconds.
    ///
    /// Source: RFC 9649, section 2.7.
    static func animation(durations: [Int], loopCount: Int) throws -> Data {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 8, height: 6)
        let still = try WebPCoder().encode(Image(pixels: pixels), as: .webp, options: EncodeOptions())
        // The only chunk of the still becomes the image of every frame.
        let image = Array(still.dropFirst(12))
        let header: [UInt8] = [0x02, 0, 0, 0] + self.little24(7) + self.little24(5)
        var chunks = self.chunk("VP8X", header)
        chunks += self.chunk("ANIM", [0, 0, 0, 0, UInt8(loopCount), 0])
        for duration in durations {
            let frame: [UInt8] = [0, 0, 0, 0, 0, 0] + self.little24(7) + self.little24(5) + self.little24(duration)
            chunks += self.chunk("ANMF", frame + [0] + image)
        }
        let size = chunks.count + 4
        return Data("RIFF".utf8) + self.little24(size) + [0] + Array("WEBP".utf8) + chunks
    }

    /// Returns an ICC profile that contains only its name.
    ///
    /// Source: ICC.1:2001-04, sections 6.1 and 6.5.17.
    static func profile(named name: String) -> Data {
        let text = Array(name.utf8) + [0]
        let padding = [UInt8](repeating: 0, count: 78)
        let tag = Array("desc".utf8) + [0, 0, 0, 0, 0, 0] + self.big16(text.count) + text + padding
        var profile = Array(repeating: UInt8(0), count: 128)
        profile.replaceSubrange(2..<4, with: self.big16(144 + tag.count))
        profile.replaceSubrange(8..<12, with: [2, 0x40, 0, 0])
        profile.replaceSubrange(12..<24, with: Array("mntrRGB XYZ ".utf8))
        profile.replaceSubrange(36..<40, with: Array("acsp".utf8))
        profile += [0, 0, 0, 1] + Array("desc".utf8) + [0, 0, 0, 144, 0, 0] + self.big16(tag.count)
        return Data(profile + tag)
    }

    private static func chunk(_ name: String, _ body: [UInt8]) -> [UInt8] {
        Array(name.utf8) + self.little24(body.count) + [0] + body + (body.count % 2 == 0 ? [] : [0])
    }

    private static func big16(_ value: Int) -> [UInt8] {
        [UInt8(value >> 8), UInt8(value & 0xFF)]
    }

    private static func little24(_ value: Int) -> [UInt8] {
        [UInt8(value & 0xFF), UInt8(value >> 8 & 0xFF), UInt8(value >> 16)]
    }
}
