import CTintypeShims
import Glibc

/// Memory of its own whose first byte lies as pixels do; given back with the value.
///
/// Sendable although unchecked: it is bytes without a type, and its owner says when they may be written.
package struct AlignedMemory: ~Copyable, @unchecked Sendable {
    /// The size of a huge page on x86-64 and most of arm64.
    private static let hugePageSize = 2 << 20

    /// The bytes; their content is undefined at first.
    package let bytes: UnsafeMutableRawBufferPointer
    /// What is given back.
    private let block: UnsafeMutableRawPointer
    /// The size of a block that may be kept for the next one; 0 of a small one.
    private let keptByteCount: Int

    /// Takes memory.
    ///
    /// Small blocks are not asked for as aligned ones: of those glibc takes back what it cut off at once, and when they
    /// are freed, the hole is too small for the next one of the same size. With small blocks between them that stay,
    /// such as the runtime's own, each frame of an animation would take new memory.
    ///
    /// Large ones are asked for in huge pages: the first touch of each small page costs more than writing it. A last
    /// part of half a huge page or more gets a whole one. Even so the zeroing of new pages is a tenth of a decode, and
    /// several times as much where there are no huge pages at hand: some of what was given back is used again.
    ///
    /// - Throws: `ImageError.Code.outOfMemory`.
    package init(byteCount: Int) throws(ImageError) {
        guard byteCount >= 2 * Self.hugePageSize else {
            let size = max(0, byteCount) + PixelLayout.alignment
            guard MemoryRoom.has(size), let block = malloc(size) else { throw .outOfMemory(byteCount) }
            self.block = block
            self.keptByteCount = 0
            let start = block.alignedUp(toMultipleOf: PixelLayout.alignment)
            self.bytes = UnsafeMutableRawBufferPointer(start: start, count: max(0, byteCount))
            return
        }
        var keptByteCount = 0
        if let kept = cshims_take_block(byteCount, &keptByteCount) {
            self.block = kept
            self.keptByteCount = keptByteCount
            self.bytes = UnsafeMutableRawBufferPointer(start: kept, count: byteCount)
            return
        }
        var base: UnsafeMutableRawPointer?
        let rest = byteCount % Self.hugePageSize
        let size = rest >= Self.hugePageSize / 2 ? byteCount - rest + Self.hugePageSize : byteCount
        guard MemoryRoom.has(size), posix_memalign(&base, Self.hugePageSize, size) == 0, let base else {
            throw .outOfMemory(byteCount)
        }
        // Only advice: where it is refused, small pages do as well.
        madvise(base, size, MADV_HUGEPAGE)
        self.block = base
        self.keptByteCount = size
        self.bytes = UnsafeMutableRawBufferPointer(start: base, count: byteCount)
    }

    /// Takes memory that the system zeroes where it is first touched: what is never written costs nothing.
    ///
    /// - Throws: `ImageError.Code.outOfMemory`.
    package init(zeroedByteCount byteCount: Int) throws(ImageError) {
        let size = byteCount + PixelLayout.alignment
        guard MemoryRoom.has(size), let block = calloc(size, 1) else { throw .outOfMemory(byteCount) }
        self.block = block
        self.keptByteCount = 0
        let start = block.alignedUp(toMultipleOf: PixelLayout.alignment)
        self.bytes = UnsafeMutableRawBufferPointer(start: start, count: byteCount)
    }

    deinit {
        if self.keptByteCount == 0 || cshims_keep_block(self.block, self.keptByteCount) == 0 { free(self.block) }
    }

    /// The first byte.
    package var start: UnsafeMutableRawPointer {
        self.bytes.baseAddress ?? self.block
    }
}

/// What is asked before much memory is taken.
///
/// Where the process has a limit of its own (`ulimit -v`), a large block must not be the last that fits in it: Swift
/// ends a process in which a small allocation fails. What is asked for here may be refused, and the load fails with a
/// typed error instead. Without a limit the answer is always yes.
package enum MemoryRoom {
    /// Smaller blocks are not asked for: the answer would take longer than the block.
    private static let smallSize = 256 << 10

    /// Whether `byteCount` more bytes are to be had, and some beside them.
    package static func has(_ byteCount: Int) -> Bool {
        byteCount < self.smallSize || cshims_has_room(byteCount) != 0
    }

    /// - Throws: `ImageError.Code.outOfMemory` unless `byteCount` more bytes are to be had.
    package static func require(_ byteCount: Int) throws(ImageError) {
        guard self.has(byteCount) else { throw .outOfMemory(byteCount) }
    }
}
