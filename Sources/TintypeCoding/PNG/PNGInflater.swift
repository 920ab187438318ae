import CZlib
import FoundationEssentials
import TintypeImage

/// Inflates a zlib stream piece by piece.
///
/// The checksum at the stream's end is not looked at: it took an eighth of the time, and the chunks that the stream
/// lies in have their own. A class, because zlib keeps the address of its state.
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
        inflateValidate(self.stream, 0)
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

/// Inflates the ICC profile of an `iCCP` chunk.
///
/// Source: W3C PNG, third edition, section 11.3.2.3. A profile says its own size in its first
/// bytes, so no more than that is inflated, and a bomb costs what an honest profile may cost.
enum PNGColorProfile {
    /// Profiles of printers take up to three megabytes.
    private static let maximumByteCount = 4 << 20
    /// The fixed header of a profile and its tag count (ICC.1, section 7.2).
    private static let minimumByteCount = 132
    private static let maximumNameLength = 80

    /// The profile in the content of a chunk, or `nil` when it is broken or too large.
    static func inflated(_ content: Data) -> Data? {
        content.withUnsafeBytes { bytes in
            guard let end = bytes.prefix(Self.maximumNameLength).firstIndex(of: 0) else { return nil }
            // Behind the name: its end, and the method, of which there is one.
            guard end + 2 < bytes.count, bytes[end + 1] == 0 else { return nil }
            var compressed = UnsafeRawBufferPointer(rebasing: bytes[(end + 2)...])
            guard let inflater = try? PNGInflater() else { return nil }
            guard let size = self.inflate(4, from: &compressed, inflater) else { return nil }
            let count = size.withUnsafeBytes { Int($0.bigEndian(at: 0) as UInt32) }
            guard (Self.minimumByteCount...Self.maximumByteCount).contains(count) else { return nil }
            guard let rest = self.inflate(count - 4, from: &compressed, inflater) else { return nil }
            return size + rest
        }
    }

    private static func inflate(
        _ count: Int,
        from compressed: inout UnsafeRawBufferPointer,
        _ inflater: PNGInflater
    ) -> Data? {
        var data = Data(count: count)
        let written = data.withUnsafeMutableBytes { (try? inflater.inflate(&compressed, into: $0)) ?? 0 }
        return written == count ? data : nil
    }
}
