// SPDX-License-Identifier: Apache-2.0

#if Zstandard
import CTintypeZstd

/// Undoes `zstd` (RFC 8878).
final class ZstandardCodec: ContentCodec {
    /// 8 MiB, the most that a content coding may ask for (RFC 9659).
    private static let maximumWindowLog: CInt = 23

    private let stream: OpaquePointer
    /// Whether the last frame has come to its end.
    private(set) var isComplete = false

    init?() {
        guard let stream = ZSTD_createDStream() else { return nil }
        self.stream = stream
        _ = ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, Self.maximumWindowLog)
    }

    deinit {
        ZSTD_freeDStream(self.stream)
    }

    var heldByteCount: Int { ZSTD_sizeof_DStream(self.stream) }

    func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> CodecProgress? {
        // The first byte of the mark of a frame, or of one to be skipped; whatever else follows is no part of it.
        if self.isComplete, let first = input.first, first != 0x28, first & 0xF0 != 0x50 {
            return CodecProgress(taken: input.count, written: 0)
        }
        guard !input.isEmpty || !self.isComplete else { return CodecProgress(taken: 0, written: 0) }
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
        let hint = ZSTD_decompressStream(self.stream, &target, &source)
        guard ZSTD_isError(hint) == 0 else { return nil }
        self.isComplete = hint == 0
        return CodecProgress(taken: source.pos, written: target.pos)
    }
}
#endif
