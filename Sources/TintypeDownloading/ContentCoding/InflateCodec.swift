// SPDX-License-Identifier: Apache-2.0

import CTintypeZlib

/// Undoes `gzip` (RFC 1952) and `deflate` (RFC 1950, or 1951 alone, as some servers send it).
final class InflateCodec: ContentCodec {
    enum Format {
        case gzip
        case zlibOrRaw
    }

    private let format: Format
    /// zlib keeps its address, so it may not move.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private var isStarted = false
    /// The first bytes of `deflate`, until they tell which of the two forms it is.
    private var start: [UInt8] = []
    private(set) var isComplete = false
    /// The window of 32 KiB, and the state with its tables.
    let heldByteCount = 48 << 10

    init?(_ format: Format) {
        self.format = format
        self.stream.initialize(to: z_stream())
        // 16 more than the largest window stands for gzip.
        if format == .gzip, !self.begin(windowBits: 15 + 16) { return nil }
    }

    deinit {
        if self.isStarted { inflateEnd(self.stream) }
        self.stream.deallocate()
    }

    func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> CodecProgress? {
        guard !input.isEmpty || self.isStarted else { return CodecProgress(taken: 0, written: 0) }
        if self.isComplete {
            // Another member may follow in gzip; whatever else follows is no part of the body.
            guard self.format == .gzip, input.first == 0x1F else {
                return CodecProgress(taken: input.count, written: 0)
            }
            guard inflateReset(self.stream) == Z_OK else { return nil }
            self.isComplete = false
        }
        guard !self.isStarted else { return self.inflate(input, into: output) }
        return self.decodeStart(input, into: output)
    }

    /// Takes the bytes that tell the form of `deflate` by themselves.
    private func decodeStart(
        _ input: UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) -> CodecProgress? {
        let count = min(2 - self.start.count, input.count)
        self.start += input.prefix(count)
        guard self.start.count == 2 else { return CodecProgress(taken: count, written: 0) }
        let isZlib = self.start[0] & 0x0F == 8 && (Int(self.start[0]) << 8 | Int(self.start[1])) % 31 == 0
        guard self.begin(windowBits: isZlib ? 15 : -15) else { return nil }
        // Two bytes never fill the output.
        guard let progress = self.start.withUnsafeBytes({ self.inflate($0, into: output) }) else { return nil }
        return CodecProgress(taken: count, written: progress.written)
    }

    private func begin(windowBits: CInt) -> Bool {
        self.isStarted = czlib_inflate_init2(self.stream, windowBits) == Z_OK
        return self.isStarted
    }

    private func inflate(
        _ input: UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) -> CodecProgress? {
        let (available, room) = (UInt32(clamping: input.count), UInt32(clamping: output.count))
        // zlib does not write to its input; its type only does not say so.
        self.stream.pointee.next_in = UnsafeMutablePointer(
            mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        )
        self.stream.pointee.avail_in = available
        self.stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        self.stream.pointee.avail_out = room
        let status = CTintypeZlib.inflate(self.stream, Z_NO_FLUSH)
        // Z_BUF_ERROR: nothing could be done with what is there.
        guard status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR else { return nil }
        self.isComplete = status == Z_STREAM_END
        return CodecProgress(
            taken: Int(available - self.stream.pointee.avail_in),
            written: Int(room - self.stream.pointee.avail_out)
        )
    }
}
