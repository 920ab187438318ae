// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import TintypeConcurrency

/// An encoded image in memory, as a server sends it.
package final class EncodedEntry: Sendable {
    /// The key of the entry, under which the disk may have it as well.
    package let key: CacheKey
    /// The encoded bytes.
    package let data: Data
    /// The metadata of the encoded bytes, and of the original from which the image was made.
    package let metadata: EntryMetadata

    /// Creates an entry.
    package init(key: CacheKey, data: Data, metadata: EntryMetadata) {
        self.key = key
        self.data = data
        self.metadata = metadata
    }

    /// The cost of the entry in bytes.
    package var cost: Int { self.data.count + self.metadata.memoryByteCount + 512 + self.key.excessByteCount }
}

/// The encoded images of a memory tier, which have their own limit and are evicted in LRU order.
///
/// The key is the image's key and a number for the encoding. So a look-up creates no cache key and does not allocate.
final class EncodedMemory: Sendable {
    private struct Key: Hashable {
        let image: CacheKey
        let encoding: UInt64

        func hash(into hasher: inout Hasher) {
            // Both are already hashes.
            hasher.combine(self.image.hash ^ self.encoding)
        }
    }

    private struct Slot {
        let key: Key
        let entry: EncodedEntry
        var life: EntryLife
        /// The neighbours in the order of use.
        var newer: Int?
        var older: Int?
    }

    private struct State {
        var slotOfKey: [Key: Int] = [:]
        var keyOfEntry: [CacheKey: Key] = [:]
        var slots: [Slot?] = []
        var freeSlots: [Int] = []
        var newest: Int?
        var oldest: Int?
        var cost = 0
        var hits = 0
        var misses = 0

        mutating func unlink(_ index: Int) {
            guard let slot = self.slots[index] else { return }
            if let newer = slot.newer { self.slots[newer]?.older = slot.older } else { self.newest = slot.older }
            if let older = slot.older { self.slots[older]?.newer = slot.newer } else { self.oldest = slot.newer }
        }

        mutating func linkAsNewest(_ index: Int) {
            self.slots[index]?.newer = nil
            self.slots[index]?.older = self.newest
            if let newest = self.newest { self.slots[newest]?.newer = index }
            self.newest = index
            if self.oldest == nil { self.oldest = index }
        }

        mutating func use(_ index: Int) {
            guard self.newest != index else { return }
            self.unlink(index)
            self.linkAsNewest(index)
        }

        mutating func insert(_ key: Key, _ entry: EncodedEntry, _ life: EntryLife) {
            let index = self.freeSlots.popLast() ?? self.slots.count
            if index == self.slots.count { self.slots.append(nil) }
            self.slots[index] = Slot(key: key, entry: entry, life: life)
            self.slotOfKey[key] = index
            self.keyOfEntry[entry.key] = key
            self.cost += entry.cost
            self.linkAsNewest(index)
        }

        mutating func remove(_ index: Int) -> EncodedEntry? {
            guard let slot = self.slots[index] else { return nil }
            self.unlink(index)
            self.slots[index] = nil
            self.freeSlots.append(index)
            self.slotOfKey[slot.key] = nil
            self.keyOfEntry[slot.entry.key] = nil
            self.cost -= slot.entry.cost
            return slot.entry
        }

        mutating func trim(to limit: Int) -> [EncodedEntry] {
            var removed: [EncodedEntry] = []
            while self.cost > limit, let oldest = self.oldest {
                if let entry = self.remove(oldest) { removed.append(entry) }
            }
            return removed
        }
    }

    private let state = Locked(State())
    private let limit: Int
    private let now: @Sendable () -> Date

    init(limit: Int, now: @escaping @Sendable () -> Date) {
        self.limit = max(0, limit)
        self.now = now
    }

    /// The number and the cost of the entries, and the counts of hits and misses.
    var figures: (count: Int, cost: Int, hits: Int, misses: Int) {
        self.state.withLock { ($0.slotOfKey.count, $0.cost, $0.hits, $0.misses) }
    }

    func entry(for image: CacheKey, encoding: UInt64, countsMiss: Bool) -> EncodedEntry? {
        let found = self.state.withLock { state -> (entry: EncodedEntry, life: EntryLife)? in
            guard let index = state.slotOfKey[Key(image: image, encoding: encoding)] else {
                if countsMiss { state.misses += 1 }
                return nil
            }
            state.use(index)
            state.hits += 1
            return state.slots[index].map { ($0.entry, $0.life) }
        }
        guard let found, !found.life.isEndless else { return found?.entry }
        return self.settle(found.entry, found.life, countsMiss: countsMiss)
    }

    /// Returns the result of a look-up that found an entry with a limited life, and extends or ends that life.
    private func settle(_ entry: EncodedEntry, _ life: EntryLife, countsMiss: Bool) -> EncodedEntry? {
        let time = self.now().timeIntervalSinceReferenceDate
        let isOver = life.isOver(at: time)
        guard isOver || life.isExtendedOnRead else { return entry }
        let removed = self.state.withLock { state -> EncodedEntry? in
            // Another entry may have replaced it meanwhile.
            let index = state.keyOfEntry[entry.key].flatMap { state.slotOfKey[$0] }
                .flatMap { state.slots[$0]?.entry === entry ? $0 : nil }
            guard isOver else {
                if let index { state.slots[index]?.life.extend(at: time) }
                return nil
            }
            state.hits -= 1
            if countsMiss { state.misses += 1 }
            return index.flatMap { state.remove($0) }
        }
        _ = consume removed
        return isOver ? nil : entry
    }

    /// Stores an entry and replaces an older one, unless it is obsolete at that moment or larger than the limit.
    ///
    /// The function calls `isObsolete` under the lock, so it must be quick and must not call the cache.
    func insert(
        _ entry: EncodedEntry,
        life: EntryLife,
        for image: CacheKey,
        encoding: UInt64,
        unless isObsolete: () -> Bool
    ) {
        let key = Key(image: image, encoding: encoding)
        // Release the removed entries after the lock.
        let removed = self.state.withLock { state -> [EncodedEntry] in
            guard !isObsolete() else { return [] }
            let old = state.slotOfKey[key].flatMap { state.remove($0) }
            if entry.cost <= self.limit { state.insert(key, entry, life) }
            return state.trim(to: self.limit) + (old.map { [$0] } ?? [])
        }
        _ = consume removed
    }

    /// Removes the entry whose own key is `key`, and returns whether there was one.
    @discardableResult
    func remove(_ key: CacheKey) -> Bool {
        let removed = self.state.withLock { state in
            state.keyOfEntry[key].flatMap { state.slotOfKey[$0] }.flatMap { state.remove($0) }
        }
        return removed != nil
    }

    /// Removes all encodings of an image.
    func removeAll(of image: CacheKey) {
        let removed = self.state.withLock { state -> [EncodedEntry] in
            let indices = state.slots.indices.filter { state.slots[$0]?.key.image == image }
            return indices.compactMap { state.remove($0) }
        }
        _ = consume removed
    }

    /// Removes the entries of a family, and returns whether there were any.
    func removeFamily(of key: CacheKey) -> Bool {
        let removed = self.state.withLock { state -> [EncodedEntry] in
            let indices = state.slots.indices.filter { state.slots[$0]?.entry.key.isOfFamily(of: key) ?? false }
            return indices.compactMap { state.remove($0) }
        }
        return !removed.isEmpty
    }

    /// Evicts the least recently used entries until the rest costs at most this fraction of the current cost.
    func trim(toFraction fraction: Double) {
        let removed = self.state.withLock { $0.trim(to: Int(Double($0.cost) * fraction)) }
        _ = consume removed
    }
}
