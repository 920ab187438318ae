import CSPNG
import FoundationEssentials
import Glibc
import TintypeImage

/// One libspng encoder; freed with the value.
struct PNGCompressor: ~Copyable {
    /// zlib's own default: smaller files cost several times the time.
    private static let compressionLevel: CInt = 6
    private let context: OpaquePointer

    init() throws(CodingError) {
        guard let context = spng_ctx_new(CInt(SPNG_CTX_ENCODER.rawValue)) else { throw .outOfMemory(.png) }
        self.context = context
    }

    deinit {
        spng_ctx_free(self.context)
    }

    /// Encodes upright pixels row by row.
    consuming func compress(_ pixels: PixelBuffer) throws -> Data {
        spng_set_option(self.context, SPNG_ENCODE_TO_BUFFER, 1)
        spng_set_option(self.context, SPNG_IMG_COMPRESSION_LEVEL, Self.compressionLevel)
        var header = spng_ihdr()
        header.width = UInt32(pixels.width)
        header.height = UInt32(pixels.height)
        header.bit_depth = 8
        header.color_type = UInt8(Self.colorType(of: pixels.format).rawValue)
        try Self.check(spng_set_ihdr(self.context, &header))
        let flags = CInt(SPNG_ENCODE_PROGRESSIVE.rawValue | SPNG_ENCODE_FINALIZE.rawValue)
        try Self.check(spng_encode_image(self.context, nil, 0, CInt(SPNG_FMT_PNG.rawValue), flags))
        try Self.encodeRows(of: pixels, to: self.context)
        return try self.takeBytes()
    }

    private static func encodeRows(of pixels: PixelBuffer, to context: OpaquePointer) throws {
        let plane = pixels.layout.planes[0]
        try pixels.withUnsafeBytes { source in
            for row in 0..<plane.height {
                if row % 64 == 0 { try Task.checkCancellation() }
                let start = source.baseAddress.map { $0 + row * plane.bytesPerRow }
                let code = spng_encode_row(context, start, plane.usedBytesPerRow)
                if code != CInt(SPNG_EOI.rawValue) { try self.check(code) }
            }
        }
    }

    /// Moves the bytes out of the encoder.
    private borrowing func takeBytes() throws -> Data {
        var count = 0
        var code: CInt = 0
        guard let bytes = spng_get_png_buffer(self.context, &count, &code) else {
            try Self.check(code)
            throw CodingError.outOfMemory(.png)
        }
        return Data(bytesNoCopy: bytes, count: count, deallocator: .free)
    }

    private static func colorType(of format: PixelFormat) -> spng_color_type {
        switch format {
        case .gray8: SPNG_COLOR_TYPE_GRAYSCALE
        case .rgb8: SPNG_COLOR_TYPE_TRUECOLOR
        default: SPNG_COLOR_TYPE_TRUECOLOR_ALPHA
        }
    }

    private static func check(_ code: CInt) throws {
        guard code != 0 else { return }
        if code == CInt(SPNG_EMEM.rawValue) { throw CodingError.outOfMemory(.png) }
        throw CodingError(
            code: .encodingFailed,
            message: "The picture can't be written as PNG: \(String(cString: spng_strerror(code))).",
            format: .png
        )
    }
}
