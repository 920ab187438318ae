// SPDX-License-Identifier: Apache-2.0

#if Brotli
import CTintypeBrotli
import Glibc

/// Undoes `br` (RFC 7932).
final class BrotliCodec: ContentCodec {
    private let state: OpaquePointer
    /// The bytes that the library has; it is handed the address with each of its calls for memory.
    private let allocatedBytes: UnsafeMutablePointer<Int>
    private(set) var isComplete = false

    /// The size of the prefix before each block, which holds the size of the block.
    private static let prefixByteCount = 16

    init?() {
        let allocatedBytes = UnsafeMutablePointer<Int>.allocate(capacity: 1)
        allocatedBytes.initialize(to: 0)
        let state = BrotliDecoderCreateInstance(
            { counter, size in
                let count = size + BrotliCodec.prefixByteCount
                guard let counter, let block = malloc(count) else { return nil }
                block.storeBytes(of: count, as: Int.self)
                counter.assumingMemoryBound(to: Int.self).pointee += count
                return block + BrotliCodec.prefixByteCount
            },
            { counter, address in
                guard let counter, let address else { return }
                let block = address - BrotliCodec.prefixByteCount
                counter.assumingMemoryBound(to: Int.self).pointee -= block.load(as: Int.self)
                free(block)
            },
            allocatedBytes
        )
        guard let state else {
            allocatedBytes.deallocate()
            return nil
        }
        self.allocatedBytes = allocatedBytes
        self.state = state
    }

    deinit {
        BrotliDecoderDestroyInstance(self.state)
        self.allocatedBytes.deallocate()
    }

    var heldByteCount: Int { self.allocatedBytes.pointee }

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
#endif
