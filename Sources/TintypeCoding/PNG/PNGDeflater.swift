import CDeflate
import FoundationEssentials
import TintypeImage

/// Compresses whole blocks of bytes as zlib streams.
///
/// libdeflate, because it makes smaller files than zlib in half the time. It takes its input in
/// one piece: a picture's filtered scanlines are held at once.
struct PNGDeflater: ~Copyable {
    /// libdeflate's levels, 0 to 12, that make files no larger than zlib's 0 to 9, measured on photographs.
    private static let levels: [CInt] = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]

    private let compressor: OpaquePointer

    /// The effort is on zlib's scale, 0 to 9; others are brought within.
    init(level: Int) throws(CodingError) {
        let level = Self.levels[min(max(0, level), Self.levels.count - 1)]
        guard let compressor = libdeflate_alloc_compressor(level) else { throw .outOfMemory(.png) }
        self.compressor = compressor
    }

    deinit {
        libdeflate_free_compressor(self.compressor)
    }

    /// The bytes as a zlib stream.
    borrowing func deflated(_ data: Data) throws(CodingError) -> Data {
        let result = data.withUnsafeBytes { bytes in
            Result<Data, CodingError> { () throws(CodingError) in try self.deflated(bytes) }
        }
        return try result.get()
    }

    /// The bytes as a zlib stream.
    borrowing func deflated(_ bytes: UnsafeRawBufferPointer) throws(CodingError) -> Data {
        let bound = libdeflate_zlib_compress_bound(self.compressor, bytes.count)
        guard MemoryRoom.has(bound) else { throw .outOfMemory(.png) }
        // What is not written to is never touched, and so costs no memory.
        let output = UnsafeMutableRawPointer.allocate(byteCount: bound, alignment: 16)
        defer { output.deallocate() }
        let count = libdeflate_zlib_compress(self.compressor, bytes.baseAddress, bytes.count, output, bound)
        guard count > 0 else {
            throw CodingError(code: .encodingFailed, message: "The picture can't be compressed as PNG.", format: .png)
        }
        return Data(bytes: output, count: count)
    }
}
