import CBrotli

/// Undoes `br` (RFC 7932).
final class BrotliCodec: ContentCodec {
    private let state: OpaquePointer
    private(set) var isComplete = false

    init?() {
        guard let state = BrotliDecoderCreateInstance(nil, nil, nil) else { return nil }
        self.state = state
    }

    deinit {
        BrotliDecoderDestroyInstance(self.state)
    }

    func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> CodecProgress? {
        guard !self.isComplete else { return CodecProgress(taken: input.count, written: 0) }
        var (available, room) = (input.count, output.count)
        var next = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var space = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let result = BrotliDecoderDecompressStream(self.state, &available, &next, &room, &space, nil)
        guard result != BROTLI_DECODER_RESULT_ERROR else { return nil }
        self.isComplete = result == BROTLI_DECODER_RESULT_SUCCESS
        return CodecProgress(taken: input.count - available, written: output.count - room)
    }
}
