import CShims
import FoundationEssentials
import Glibc

/// A block of memory for a body: from `malloc` where it is small, mapped where it is large.
///
/// Mapped memory costs nothing before it is touched, and grows without a copy. All but its first part lies on
/// huge pages where the system grants them: filling 200 MiB takes a hundred page faults instead of fifty
/// thousand. The first part does not, or one byte of a large body would cost a huge page.
struct BodyBlock {
    private static let hugePage = 2 << 20

    let base: UnsafeMutableRawPointer
    let capacity: Int
    private let isMapped: Bool

    /// The same bytes in a block of at least `capacity`, or `nil` where there is no memory; the old block then stays.
    static func grown(_ old: BodyBlock?, count: Int, to capacity: Int) -> BodyBlock? {
        guard capacity > self.hugePage else { return self.allocated(old, capacity) }
        let (rounded, overflow) = capacity.addingReportingOverflow(self.hugePage - 1)
        let size = rounded / self.hugePage * self.hugePage
        guard !overflow, let base = cshims_map(size, self.hugePage) else { return nil }
        if size > self.hugePage { madvise(base + self.hugePage, size - self.hugePage, CInt(MADV_HUGEPAGE)) }
        let block = BodyBlock(base: base, capacity: size, isMapped: true)
        guard let old else { return block }
        if old.isMapped, cshims_move_mapped(old.base, base, old.capacity) == 0 { return block }
        memcpy(base, old.base, count)
        old.free()
        return block
    }

    private static func allocated(_ old: BodyBlock?, _ capacity: Int) -> BodyBlock? {
        realloc(old?.base, capacity).map { BodyBlock(base: $0, capacity: capacity, isMapped: false) }
    }

    func free() {
        if self.isMapped {
            munmap(self.base, self.capacity)
        } else {
            Glibc.free(self.base)
        }
    }

    /// Gives the first `count` bytes, at least one, away as a `Data`, and what is behind them back.
    consuming func makeData(count: Int) -> Data {
        guard self.isMapped else {
            // A block that grew by doubling gives back what it did not need.
            let isTooLarge = self.capacity - count > count / 8
            let base = isTooLarge ? realloc(self.base, count) ?? self.base : self.base
            return Data(bytesNoCopy: base, count: count, deallocator: .free)
        }
        let pageSize = Int(sysconf(CInt(_SC_PAGESIZE)))
        let used = (count + pageSize - 1) / pageSize * pageSize
        if used < self.capacity { munmap(self.base + used, self.capacity - used) }
        return Data(bytesNoCopy: self.base, count: count, deallocator: .custom { base, _ in munmap(base, used) })
    }
}
