// SPDX-License-Identifier: Apache-2.0

import CTintypeInflate
import FoundationEssentials
import TintypeImage

/// Inflates a zlib stream piece by piece.
///
/// It is a class, so that its deinitialiser frees the stream.
final class PNGInflater {
    /// The memory in bytes of a stream: its window, the bytes decoded ahead, and its tables.
    static let byteCount = cinflate_size()

    /// The most compressed bytes to inflate at once, because empty blocks take time and yield nothing.
    static let inputByteCount = 64 << 10

    private let stream: OpaquePointer
    /// Whether the stream has ended.
    private(set) var isFinished = false
    /// Whether the next call may return bytes without more input, because they are decoded already.
    private(set) var isAhead = false
    private var isBroken = false
    /// Whether the stream has more bytes than the image needs.
    private var goesOn = false

    init() throws(CodingError) {
        guard let stream = cinflate_begin() else { throw .outOfMemory(.png) }
        self.stream = stream
    }

    deinit {
        cinflate_end(self.stream)
    }

    /// Inflates until `output` is full, `input` is used up, or the stream ends.
    ///
    /// - Parameters:
    ///   - input: Compressed bytes; the method removes the used ones from the front.
    ///   - output: The memory for the inflated bytes.
    /// - Returns: The number of bytes written.
    /// - Throws: `CodingError` for a broken stream, but only if no bytes could be written.
    func inflate(
        _ input: inout UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(CodingError) -> Int {
        var written = 0
        guard let to = output.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return 0 }
        while written < output.count, !self.isBroken, !self.isFinished, !input.isEmpty || self.isAhead {
            let inputCount = min(input.count, Int(Int32.max))
            let outputCount = min(output.count - written, Int(Int32.max))
            var (inputRest, outputRest) = (UInt32(inputCount), UInt32(outputCount))
            let from = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
            let result = cinflate_step(self.stream, from, &inputRest, to + written, &outputRest)
            let used = inputCount - Int(inputRest)
            let gained = outputCount - Int(outputRest)
            input = UnsafeRawBufferPointer(rebasing: input[used...])
            written += gained
            self.isFinished = result == cinflate_is_finished
            self.isBroken = result == cinflate_is_broken
            self.isAhead = outputRest == 0
            if used == 0, gained == 0 { break }
        }
        if self.isBroken, written == 0 { throw .corrupt(.png, "its compressed data is broken") }
        return written
    }

    /// Checks for the end of the stream and its checksum, after all needed bytes were inflated.
    ///
    /// libpng refuses a stream without its end and one with a wrong checksum, and warns of one that continues. A stream
    /// that continues is not read any further.
    ///
    /// - Parameters:
    ///   - input: Compressed bytes; the method removes the used ones from the front.
    ///   - work: The counter of the decode's work.
    /// - Returns: Whether the stream ends or continues; `false` if more bytes are needed.
    /// - Throws: `CodingError` for a wrong checksum, for broken data, and for too much work; `CancellationError`.
    func hasEnded(_ input: inout UnsafeRawBufferPointer, work: DecodeWork) throws -> Bool {
        while !self.isFinished, !self.goesOn {
            var step = UnsafeRawBufferPointer(rebasing: input.prefix(Self.inputByteCount))
            let offered = step.count
            guard offered > 0 || self.isAhead else { return false }
            var byte: UInt8 = 0
            self.goesOn = try withUnsafeMutableBytes(of: &byte) { try self.inflate(&step, into: $0) } > 0
            let used = offered - step.count
            input = UnsafeRawBufferPointer(rebasing: input[used...])
            try work.count(used * DecodeWork.unitsPerByte)
            guard used > 0 || self.goesOn || self.isFinished else { return false }
        }
        return true
    }
}

/// Inflates the ICC profile of an `iCCP` chunk.
///
/// Source: W3C PNG, third edition, section 11.3.2.3. A profile states its own size in its first bytes. No more than
/// that is inflated, so a decompression bomb costs no more than a real profile.
enum PNGColorProfile {
    /// The most bytes of a profile; profiles of printers have up to three megabytes.
    private static let maximumByteCount = 4 << 20
    /// The fixed header of a profile and its tag count (ICC.1, section 7.2).
    private static let minimumByteCount = 132
    private static let maximumNameLength = 80

    /// Returns the profile in the content of a chunk, or `nil` if it is broken or too large.
    static func inflated(_ content: Data) -> Data? {
        content.withUnsafeBytes { bytes in
            guard let end = bytes.prefix(Self.maximumNameLength).firstIndex(of: 0) else { return nil }
            // The name is followed by a zero and the method, of which only one exists.
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
