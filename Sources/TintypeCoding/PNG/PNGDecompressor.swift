import CSPNG
import FoundationEssentials
import TintypeImage

/// One libspng decoder over the bytes of one file; freed with the value.
///
/// The bytes must outlive it: use it inside the closure that lends them.
struct PNGDecompressor: ~Copyable {
    /// What an ancillary chunk may take: profiles and texts are small, bombs are not.
    private static let maximumChunkSize = 16 << 20
    private static let maximumChunkCacheSize = 32 << 20

    private let context: OpaquePointer

    init(_ bytes: UnsafeRawBufferPointer, limits: DecodingLimits, ignoresChecksums: Bool) throws(CodingError) {
        guard let context = spng_ctx_new(0) else { throw .outOfMemory(.png) }
        self.context = context
        let side = UInt32(clamping: min(limits.maximumSide, Int(Int32.max)))
        spng_set_image_limits(context, side, side)
        spng_set_chunk_limits(context, Self.maximumChunkSize, Self.maximumChunkCacheSize)
        // A wrong checksum in a chunk that holds no pixels costs that chunk, not the picture.
        let critical = ignoresChecksums ? SPNG_CRC_USE : SPNG_CRC_ERROR
        spng_set_crc_action(context, CInt(critical.rawValue), CInt(SPNG_CRC_DISCARD.rawValue))
        spng_set_png_buffer(context, bytes.baseAddress, bytes.count)
    }

    deinit {
        spng_ctx_free(self.context)
    }

    /// The embedded ICC profile; `nil` when there is none or its chunk is broken.
    borrowing func colorProfile() -> Data? {
        var profile = spng_iccp()
        guard spng_get_iccp(self.context, &profile) == 0, let bytes = profile.profile else { return nil }
        return Data(bytes: bytes, count: profile.profile_len)
    }

    /// Decodes row by row, or pass by pass.
    borrowing func decompress(header: ImageHeader, png: PNGHeader, allowsTruncated: Bool) throws -> PixelBuffer {
        let (format, code) = Self.output(for: png)
        let layout = try PixelLayout(format: format, width: header.pixelWidth, height: header.pixelHeight)
        let flags = SPNG_DECODE_PROGRESSIVE.rawValue | (png.hasAlpha ? SPNG_DECODE_TRNS.rawValue : 0)
        try self.maskTransparentColor(bitDepth: png.bitDepth)
        let start = spng_decode_image(self.context, nil, 0, CInt(code.rawValue), CInt(flags))
        guard start == 0 else { throw Self.error(start) }
        let buffer = try PixelBuffer(
            layout,
            fillingUnsafely: { pixels in
                if allowsTruncated { pixels.initializeMemory(as: UInt8.self, repeating: 0) }
                try Self.decodeRows(self.context, to: pixels, layout: layout, allowsTruncated: allowsTruncated)
            }
        )
        return buffer
    }

    /// Clears the bits of the transparent colour that lie above the bit depth.
    ///
    /// The specification leaves them out; libspng compares them (libspng issue 48).
    private borrowing func maskTransparentColor(bitDepth: Int) throws {
        var color = spng_trns()
        let code = spng_get_trns(self.context, &color)
        if code == CInt(SPNG_ECHUNKAVAIL.rawValue) { return }
        guard code == 0 else { throw Self.error(code) }
        guard bitDepth < 16 else { return }
        let mask = UInt16(1) << bitDepth - 1
        color.gray &= mask
        color.red &= mask
        color.green &= mask
        color.blue &= mask
        spng_set_trns(self.context, &color)
    }

    private static func decodeRows(
        _ context: OpaquePointer,
        to pixels: UnsafeMutableRawBufferPointer,
        layout: PixelLayout,
        allowsTruncated: Bool
    ) throws {
        let plane = layout.planes[0]
        var row = spng_row_info()
        while true {
            var code = spng_get_row_info(context, &row)
            if code == 0 {
                if row.row_num % 64 == 0 { try Task.checkCancellation() }
                let target = pixels.baseAddress.map { $0 + Int(row.row_num) * plane.bytesPerRow }
                code = spng_decode_row(context, target, plane.usedBytesPerRow)
            }
            if code == CInt(SPNG_EOI.rawValue) {
                if !allowsTruncated { try self.readEnd(context) }
                return
            }
            guard code == 0 else {
                if allowsTruncated, self.isTruncation(code) { return }
                throw self.error(code)
            }
        }
    }

    /// Reads on behind the pixels: their last checksum and the end chunk.
    ///
    /// Other chunks hold no pixels; what is wrong with them harms nothing.
    private static func readEnd(_ context: OpaquePointer) throws {
        let code = spng_decode_chunks(context)
        if self.isTruncation(code) || code == CInt(SPNG_ECHUNK_CRC.rawValue) { throw self.error(code) }
    }

    private static func output(for png: PNGHeader) -> (PixelFormat, spng_format) {
        if png.hasAlpha { return (.rgba8, SPNG_FMT_RGBA8) }
        if png.colorType == .gray, png.bitDepth <= 8 { return (.gray8, SPNG_FMT_G8) }
        return (.rgb8, SPNG_FMT_RGB8)
    }

    private static func isTruncation(_ code: CInt) -> Bool {
        code == SPNG_IO_EOF.rawValue || code == CInt(SPNG_EIDAT_TOO_SHORT.rawValue)
    }

    private static func error(_ code: CInt) -> CodingError {
        if code == CInt(SPNG_EMEM.rawValue) { return .outOfMemory(.png) }
        return self.isTruncation(code) ? .truncated(.png) : .corrupt(.png, String(cString: spng_strerror(code)))
    }
}
