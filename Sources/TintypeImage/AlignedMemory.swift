// SPDX-License-Identifier: Apache-2.0

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
    /// The block to free.
    private let block: UnsafeMutableRawPointer
    /// The size of a block that may be kept for the next one; 0 of a small one.
    private let keptByteCount: Int

    /// Allocates memory.
    ///
    /// Small blocks are not allocated as aligned ones: glibc reclaims their remainder at once, and after they are freed
    /// the hole is too small for the next block of the same size. With small blocks between them that stay, such as the
    /// runtime's own, each frame of an animation would take new memory.
    ///
    /// Large blocks use huge pages, because the first touch of each small page costs more than writing it. A last part
    /// of half a huge page or more gets a whole one. Even so the zeroing of new pages is a tenth of a decode, and
    /// several times as much without huge pages. Therefore some freed blocks are used again.
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
        // This is only advice: without it small pages do as well.
        madvise(base, size, MADV_HUGEPAGE)
        self.block = base
        self.keptByteCount = size
        self.bytes = UnsafeMutableRawBufferPointer(start: base, count: byteCount)
    }

    /// Allocates memory that the system zeroes at the first touch: memory that is never written costs nothing.
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

/// The check before much memory is allocated.
///
/// If the process has a limit of its own (`ulimit -v`), a large block must not be the last that fits in it, because
/// Swift ends a process in which a small allocation fails. This check fails instead, and the load throws a typed error.
/// Without a limit it always succeeds.
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
