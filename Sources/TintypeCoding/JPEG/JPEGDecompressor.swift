import CTurboJPEG
import FoundationEssentials
import TintypeImage

/// One TurboJPEG decompressor; freed with the object.
final class JPEGDecompressor {
    private let handle: tjhandle

    init() throws(CodingError) {
        guard let handle = tjInitDecompress() else { throw .outOfMemory(.jpeg) }
        self.handle = handle
    }

    deinit {
        tjDestroy(self.handle)
    }

    /// Decodes `data` to a `divisor`-th of its size by the DCT.
    func decompress(_ data: Data, jpeg: JPEGHeader, divisor: Int, allowsTruncated: Bool) throws -> PixelBuffer {
        // As TJSCALED: a partial pixel counts as a whole one.
        let layout = try PixelLayout(
            format: jpeg.componentCount == 1 ? .gray8 : .rgb8,
            width: (jpeg.width + divisor - 1) / divisor,
            height: (jpeg.height + divisor - 1) / divisor
        )
        return try data.withUnsafeBytes { source in
            try PixelBuffer(
                layout,
                fillingUnsafely: { pixels in
                    if jpeg.componentCount == 4 {
                        try self.decompressCMYK(source, to: pixels, layout: layout, jpeg, allowsTruncated)
                    } else {
                        let format = jpeg.componentCount == 1 ? TJPF_GRAY : TJPF_RGB
                        try self.decompress(source, to: pixels, layout: layout, as: format, jpeg, allowsTruncated)
                    }
                }
            )
        }
    }

    private func decompress(
        _ source: UnsafeRawBufferPointer,
        to pixels: UnsafeMutableRawBufferPointer,
        layout: PixelLayout,
        as format: TJPF,
        _ jpeg: JPEGHeader,
        _ allowsTruncated: Bool
    ) throws {
        // A damaged stream may leave rows unwritten.
        pixels.initializeMemory(as: UInt8.self, repeating: 0)
        let code = tjDecompress2(
            self.handle,
            source.baseAddress?.assumingMemoryBound(to: UInt8.self),
            UInt(source.count),
            pixels.baseAddress?.assumingMemoryBound(to: UInt8.self),
            CInt(layout.width),
            CInt(layout.planes[0].bytesPerRow),
            CInt(layout.height),
            CInt(format.rawValue),
            TJFLAG_LIMITSCANS
        )
        guard code != 0 else { return }
        let reason = String(cString: tjGetErrorStr2(self.handle))
        guard tjGetErrorCode(self.handle) == CInt(TJERR_WARNING.rawValue), Self.isWarning(reason) else {
            throw CodingError.corrupt(.jpeg, reason)
        }
        // The library went on after a warning. Damage inside a complete file is shown as it
        // is, as browsers do; a missing end is an error unless it was allowed.
        if !allowsTruncated, !Self.hasEnd(source, after: jpeg.scanOffset) {
            throw CodingError.truncated(.jpeg)
        }
    }

    /// Whether `reason` is a warning of libjpeg.
    ///
    /// TurboJPEG calls a fatal error a warning when a warning came before it; only the text tells.
    /// Source: the `JWRN` messages of jerror.h.
    private static func isWarning(_ reason: String) -> Bool {
        [
            "Corrupt JPEG data", "Premature end of JPEG file", "Inconsistent progression sequence",
            "Invalid SOS parameters", "Unknown Adobe color transform", "Warning:",
            "Application transferred too many scanlines",
        ]
        .contains { reason.hasPrefix($0) }
    }

    /// Whether an end marker follows the first scan.
    ///
    /// It can't stand inside entropy-coded data.
    private static func hasEnd(_ source: UnsafeRawBufferPointer, after offset: Int) -> Bool {
        var index = source.count - 1
        while index > offset {
            if source[index] == 0xD9, source[index - 1] == 0xFF { return true }
            index -= 1
        }
        return false
    }

    /// Decodes CMYK and YCCK; the library gives out CMYK, which is mixed down to RGB.
    private func decompressCMYK(
        _ source: UnsafeRawBufferPointer,
        to pixels: UnsafeMutableRawBufferPointer,
        layout: PixelLayout,
        _ jpeg: JPEGHeader,
        _ allowsTruncated: Bool
    ) throws {
        // Four samples a pixel, whatever they mean.
        let inkLayout = try PixelLayout(format: .rgba8, width: layout.width, height: layout.height)
        let inks = try PixelBuffer(
            inkLayout,
            fillingUnsafely: { inks in
                try self.decompress(source, to: inks, layout: inkLayout, as: TJPF_CMYK, jpeg, allowsTruncated)
            }
        )
        let inversion: UInt8 = jpeg.hasAdobeMarker ? 0 : 255
        try inks.withUnsafeBytes { inks in
            for row in 0..<layout.height {
                try Task.checkCancellation()
                for column in 0..<layout.width {
                    let ink = row * inkLayout.planes[0].bytesPerRow + column * 4
                    let pixel = row * layout.planes[0].bytesPerRow + column * 3
                    let key = Int(inks[ink + 3] ^ inversion)
                    for channel in 0..<3 {
                        // Stored light, as Adobe does: 255 is no ink.
                        pixels[pixel + channel] = UInt8((Int(inks[ink + channel] ^ inversion) * key + 127) / 255)
                    }
                }
            }
        }
    }
}
