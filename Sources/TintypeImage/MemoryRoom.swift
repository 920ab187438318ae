import CShims

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
        guard !self.has(byteCount) else { return }
        throw ImageError(
            code: .outOfMemory,
            message: "There is no memory for \(byteCount) bytes of a picture; lower the limits or the number of lanes, "
                + "or raise the limit of memory (ulimit -v)."
        )
    }
}
