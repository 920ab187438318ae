// SPDX-License-Identifier: Apache-2.0

import CTintypeDeflate
import FoundationEssentials

/// Writes images in Kitty's graphics protocol, which many terminals know besides Kitty.
///
/// Source: "Terminal graphics protocol", https://sw.kovidgoyal.net/kitty/graphics-protocol/. Answers are suppressed
/// (`q=2`), and the cursor stays (`C=1`).
enum KittyEncoder {
    /// The most bytes of base64 in one escape code.
    static let chunkSize = 4_096

    /// Asks whether the terminal knows the protocol: an image of one pixel that is not stored.
    static let query = "\u{1B}_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\u{1B}\\"

    /// Shows an image at the cursor.
    ///
    /// - Parameters:
    ///   - pixels: The image.
    ///   - id: Names it in the terminal, not 0; an image that has the name already goes away.
    ///   - cells: The columns and rows to scale it to; `nil` shows its pixels one to one.
    /// - Returns: The escape codes.
    static func show(_ pixels: TerminalPixels, id: UInt32, cells: CellSize? = nil) -> [UInt8] {
        let hasAlpha = pixels.isTransparent
        let samples = Self.samples(of: pixels, hasAlpha: hasAlpha)
        let compressed = Self.compressed(samples)
        let payload = Data(compressed ?? samples).base64EncodedData()
        var keys = "a=T,q=2,C=1,i=\(id),p=1,f=\(hasAlpha ? 32 : 24),s=\(pixels.width),v=\(pixels.height)"
        if compressed != nil { keys += ",o=z" }
        if let cells { keys += ",c=\(cells.columns),r=\(cells.rows)" }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(payload.count + payload.count / Self.chunkSize * 16 + 128)
        var start = payload.startIndex
        repeat {
            let end = min(start + Self.chunkSize, payload.endIndex)
            let isLast = end == payload.endIndex
            bytes += "\u{1B}_G\(keys),m=\(isLast ? 0 : 1);".utf8
            bytes += payload[start..<end]
            bytes += "\u{1B}\\".utf8
            keys = "q=2"
            start = end
        } while start < payload.endIndex
        return bytes
    }

    /// Takes an image away, with what the terminal keeps of it.
    static func delete(_ id: UInt32) -> [UInt8] {
        Array("\u{1B}_Ga=d,d=I,i=\(id),q=2\u{1B}\\".utf8)
    }

    private static func samples(of pixels: TerminalPixels, hasAlpha: Bool) -> [UInt8] {
        let count = pixels.pixels.count * (hasAlpha ? 4 : 3)
        return [UInt8](unsafeUninitializedCapacity: count) { bytes, written in
            var place = 0
            for pixel in pixels.pixels {
                bytes[place] = UInt8(truncatingIfNeeded: pixel)
                bytes[place + 1] = UInt8(truncatingIfNeeded: pixel >> 8)
                bytes[place + 2] = UInt8(truncatingIfNeeded: pixel >> 16)
                if hasAlpha { bytes[place + 3] = UInt8(truncatingIfNeeded: pixel >> 24) }
                place += hasAlpha ? 4 : 3
            }
            written = count
        }
    }

    /// Returns the bytes in zlib's format; `nil` without memory.
    private static func compressed(_ bytes: [UInt8]) -> [UInt8]? {
        // The fastest level: a frame must be there in time, and the terminal is mostly near.
        guard let compressor = libdeflate_alloc_compressor(1) else { return nil }
        defer { libdeflate_free_compressor(compressor) }
        let bound = libdeflate_zlib_compress_bound(compressor, bytes.count)
        let result = [UInt8](unsafeUninitializedCapacity: bound) { target, count in
            count = libdeflate_zlib_compress(compressor, bytes, bytes.count, target.baseAddress, bound)
        }
        return result.isEmpty ? nil : result
    }
}
