import CZlib
import TintypeImage

/// Inflates a zlib stream piece by piece.
///
/// A class, because zlib keeps the address of its state.
final class PNGInflater {
    /// The memory that zlib takes: its window and its tables.
    static let byteCount = 40 << 10

    private let stream: UnsafeMutablePointer<z_stream>
    /// Whether the stream has come to its end.
    private(set) var isFinished = false

    init() throws(CodingError) {
        self.stream = .allocate(capacity: 1)
        self.stream.initialize(to: z_stream())
        guard czlib_inflate_init(self.stream) == Z_OK else {
            self.stream.deallocate()
            throw .outOfMemory(.png)
        }
    }

    deinit {
        inflateEnd(self.stream)
        self.stream.deallocate()
    }

    /// Inflates until `output` is full, `input` is used up, or the stream ends.
    ///
    /// - Parameters:
    ///   - input: Compressed bytes; what was used is taken off its front.
    ///   - output: Where the bytes go.
    /// - Returns: The bytes written.
    /// - Throws: `CodingError` for a broken stream, only when nothing could be written before.
    func inflate(
        _ input: inout UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(CodingError) -> Int {
        var written = 0
        while written < output.count, !input.isEmpty, !self.isFinished {
            let inputCount = min(input.count, Int(Int32.max))
            let outputCount = min(output.count - written, Int(Int32.max))
            // zlib does not write to its input; only its type says so.
            self.stream.pointee.next_in = UnsafeMutablePointer(
                mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self)
            )
            self.stream.pointee.avail_in = UInt32(inputCount)
            self.stream.pointee.next_out = output.baseAddress.map {
                ($0 + written).assumingMemoryBound(to: UInt8.self)
            }
            self.stream.pointee.avail_out = UInt32(outputCount)
            let code = CZlib.inflate(self.stream, Z_NO_FLUSH)
            let used = inputCount - Int(self.stream.pointee.avail_in)
            let gained = outputCount - Int(self.stream.pointee.avail_out)
            input = UnsafeRawBufferPointer(rebasing: input[used...])
            written += gained
            switch code {
            case Z_OK: break
            case Z_STREAM_END: self.isFinished = true
            case Z_MEM_ERROR: throw .outOfMemory(.png)
            default:
                if written > 0 { return written }
                throw .corrupt(.png, "its compressed data is broken")
            }
            if used == 0, gained == 0 { break }
        }
        return written
    }
}
