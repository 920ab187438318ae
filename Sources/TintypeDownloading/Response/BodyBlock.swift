// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import FoundationEssentials
import Glibc

/// A block of memory for a body: small ones from `malloc`, others from the pool, large ones mapped.
///
/// Mapped memory costs nothing before it is touched, and grows without a copy. Very large bodies lie on huge pages,
/// except for their first part, if the system grants them: filling 200 MiB takes a hundred page faults instead of fifty
/// thousand. On the first part, one byte of a body would cost a huge page. Smaller bodies have no huge pages either,
/// because one fault may take milliseconds on a virtual machine, in which all transfers stand still.
struct BodyBlock {
    private enum Origin {
        case heap
        case pool
        case mapped
    }

    private static let hugePage = 2 << 20
    /// Bodies up to here lie on small pages.
    private static let largestOnSmallPages = 64 << 20
    /// Up to here a block is allocated without a look at the limits of the process.
    private static let smallSize = 256 << 10

    let base: UnsafeMutableRawPointer
    let capacity: Int
    private let origin: Origin

    /// Returns the same bytes in a block of at least `capacity`; `nil` without memory, and the old block stays.
    static func grown(_ old: BodyBlock?, count: Int, to capacity: Int) -> BodyBlock? {
        // A body must leave memory for all that cannot be refused.
        if capacity > Self.smallSize, cshims_has_room(capacity) == 0 { return nil }
        if capacity > self.hugePage { return self.mapped(old, count: count, capacity) }
        guard BlockPool.sizes.contains(capacity) || old?.origin == .pool else {
            return realloc(old?.base, capacity).map { BodyBlock(base: $0, capacity: capacity, origin: .heap) }
        }
        let isPooled = BlockPool.sizes.contains(capacity)
        let size = isPooled ? BlockPool.size(for: capacity) : capacity
        guard let base = isPooled ? BlockPool.shared.take(size: size) : malloc(size) else { return nil }
        return BodyBlock(base: base, capacity: size, origin: isPooled ? .pool : .heap).replacing(old, count: count)
    }

    /// The bytes that `count` bytes keep in memory, in a block of `capacity`.
    static func residentByteCount(capacity: Int, count: Int) -> Int {
        guard capacity > self.hugePage else {
            return BlockPool.sizes.contains(capacity) ? BlockPool.size(for: capacity) : capacity
        }
        // The first part lies on small pages, of which some are counted at once.
        let isOnHugePages = capacity > self.largestOnSmallPages && count > self.hugePage
        let step = isOnHugePages ? self.hugePage : self.hugePage / 8
        return min(capacity, (count + step - 1) / step * step)
    }

    /// Frees the block; `pool` unmaps a large one in steps.
    func free(by pool: BlockPool? = nil) {
        switch self.origin {
        case .heap: Glibc.free(self.base)
        case .pool: BlockPool.shared.give(self.base, size: self.capacity)
        case .mapped:
            guard let pool else {
                munmap(self.base, self.capacity)
                return
            }
            pool.discard(self.base, size: self.capacity)
        }
    }

    /// Gives the first `count` bytes, at least one, away as a `Data`, and what is behind them back.
    consuming func makeData(count: Int) -> Data {
        // A block that grew by doubling gives back what it did not need.
        let isTooLarge = self.capacity - count > count / 4
        switch self.origin {
        case .heap:
            let base = isTooLarge ? realloc(self.base, count) ?? self.base : self.base
            return Data(bytesNoCopy: base, count: count, deallocator: .free)
        case .pool where isTooLarge:
            defer { self.free() }
            return Data(bytes: self.base, count: count)
        case .pool:
            let size = self.capacity
            return Data(
                bytesNoCopy: self.base,
                count: count,
                deallocator: .custom { base, _ in BlockPool.shared.give(base, size: size) }
            )
        case .mapped:
            let pageSize = Int(sysconf(CInt(_SC_PAGESIZE)))
            let used = (count + pageSize - 1) / pageSize * pageSize
            if used < self.capacity { munmap(self.base + used, self.capacity - used) }
            return Data(bytesNoCopy: self.base, count: count, deallocator: .custom { base, _ in munmap(base, used) })
        }
    }

    private static func mapped(_ old: BodyBlock?, count: Int, _ capacity: Int) -> BodyBlock? {
        let (rounded, overflow) = capacity.addingReportingOverflow(self.hugePage - 1)
        let size = rounded / self.hugePage * self.hugePage
        guard !overflow, let base = cshims_map(size, self.hugePage) else { return nil }
        if size > self.largestOnSmallPages {
            madvise(base + self.hugePage, size - self.hugePage, CInt(MADV_HUGEPAGE))
        }
        let block = BodyBlock(base: base, capacity: size, origin: .mapped)
        if let old, old.origin == .mapped, cshims_move_mapped(old.base, base, old.capacity) == 0 { return block }
        return block.replacing(old, count: count)
    }

    private func replacing(_ old: BodyBlock?, count: Int) -> BodyBlock {
        guard let old else { return self }
        memcpy(self.base, old.base, count)
        old.free()
        return self
    }
}
