import Glibc
import TintypeImage

/// The memory for all rows of a picture, of which only those take room that are written and not yet given back.
///
/// libwebp wants the address of a whole picture, but never looks back at rows that it has given out. Pages are zero
/// until they are written.
struct WebPRowWindow: ~Copyable {
    /// Rows are given back by this many bytes at once: each call costs about a microsecond.
    private static let step = 1 << 20

    /// The whole range.
    let bytes: UnsafeMutableRawBufferPointer
    /// What is given back already, from the start.
    private var released = 0

    /// Reserves the range, or `nil` where the system refuses.
    init?(byteCount: Int) {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        let base = mmap(nil, byteCount, PROT_READ | PROT_WRITE, flags, -1, 0)
        guard let base, base != MAP_FAILED else { return nil }
        self.bytes = UnsafeMutableRawBufferPointer(start: base, count: byteCount)
    }

    deinit {
        munmap(self.bytes.baseAddress, self.bytes.count)
    }

    /// Gives back what lies before `offset`.
    mutating func release(before offset: Int) {
        let end = offset / Self.step * Self.step
        guard end > self.released else { return }
        madvise(self.bytes.baseAddress.map { $0 + self.released }, end - self.released, Int32(MADV_DONTNEED))
        self.released = end
    }
}
