// SPDX-License-Identifier: Apache-2.0

/// The eviction policy of the memory tier, which follows the best of four policies.
///
/// It simulates LRU, S3-FIFO, W-TinyLFU and LIRS on hashes and weights only. The cache evicts entries that the leading
/// policy would not hold. Each policy is the best for some kind of load. ``PolicyContest`` ensures that the cache is
/// about as good as the best one, and never worse than LRU.
///
/// Source: Subramanian, Smaragdakis and Loh, "Adaptive caches: effective shaping of cache behavior to workloads", MICRO
/// 2006. A cache that evicts entries which the better of two policies does not hold has at most twice the misses of
/// that policy, on any load.
///
/// Callers identify an entry by the slot that ``insert(hash:weight:)`` returns. All operations take amortised constant
/// time, and a use does not allocate.
package struct EvictionPolicy: Sendable {
    private struct Node {
        var weight = 0
        /// Whether the entry is in the cache itself.
        var isResident = false
    }

    private var directory = SlotDirectory()
    private var nodes = SlotTable(Node())
    private var lru: LRUPolicy
    private var fifo: S3FIFOPolicy
    private var lfu: WTinyLFUPolicy
    private var lirs: LIRSPolicy
    /// For each policy, the resident entries that it would not hold, in the order in which it evicted them.
    private var outsiders = [SlotRings](repeating: SlotRings(count: 1), count: 4)
    private var contest = PolicyContest(policyCount: 4)
    private var count = 0
    private var lastUsed = -1
    /// The slots that a policy evicted during a request; the array is reused to avoid allocations.
    private var lost: [Int32] = []

    /// Creates a policy for a cache whose entries have a total weight of at most `capacity`.
    package init(capacity: Int) {
        self.lru = LRUPolicy(capacity: capacity)
        // LRU leads at first, so the other policies need not fill their queues with the first entries.
        self.fifo = S3FIFOPolicy(capacity: capacity, fillsMainQueue: false)
        self.lfu = WTinyLFUPolicy(capacity: capacity)
        self.lirs = LIRSPolicy(capacity: capacity)
    }

    // MARK: Changes of the cache

    /// Records that the cache stored an entry.
    ///
    /// - Returns: The slot of the entry, which is valid until ``remove(_:)`` or ``evict(_:)``.
    package mutating func insert(hash: UInt64, weight: Int) -> Int {
        let slot = self.directory.slot(of: hash) ?? self.directory.insert(hash)
        if self.nodes[slot].weight != weight { self.forget(slot) }
        self.nodes[slot].weight = weight
        self.request(slot)
        if !self.nodes[slot].isResident {
            self.nodes[slot].isResident = true
            self.count += 1
        }
        for policy in 0..<4 where !self.holds(slot, policy) && !self.outsiders[policy].contains(slot) {
            self.outsiders[policy].append(slot)
        }
        self.lastUsed = slot
        return slot
    }

    /// Records that the entry in `slot` was read.
    ///
    /// Consecutive uses of one entry count once.
    package mutating func use(_ slot: Int) {
        guard slot != self.lastUsed else { return }
        self.lastUsed = slot
        self.request(slot)
    }

    /// Returns whether `slot` belongs to an entry of the cache with this hash.
    package func isResident(_ slot: Int, hash: UInt64) -> Bool {
        self.nodes[slot].isResident && self.directory.hash(of: slot) == hash
    }

    /// Records that the entry in `slot` was evicted or has expired.
    package mutating func evict(_ slot: Int) {
        self.leave(slot)
        self.release(slot)
    }

    /// Records that the entry in `slot` was removed, and discards its history.
    package mutating func remove(_ slot: Int) {
        self.leave(slot)
        self.forget(slot)
        self.release(slot)
    }

    // MARK: The next victim

    /// Returns the slot of the entry to evict next, which is not `spared`, or `nil` if there is no other entry.
    package func victim(sparing spared: Int) -> Int? {
        if let slot = self.outsider(of: self.contest.leader, sparing: spared) { return slot }
        // The leader holds all entries except the new one, which it would not have admitted.
        if let slot = self.outsider(of: 0, sparing: spared) { return slot }
        var next = self.lru.oldest
        while let slot = next {
            if slot != spared, self.nodes[slot].isResident { return slot }
            next = self.lru.newer(than: slot)
        }
        return nil
    }

    /// Returns the slots of all entries of the cache, least recently used first.
    package func residentsByAge() -> [Int] {
        var slots: [Int] = []
        // Entries that LRU would have evicted are older than all that it holds.
        var next = self.outsiders[0].oldest()
        while let slot = next {
            slots.append(slot)
            next = self.outsiders[0].newer(than: slot)
        }
        next = self.lru.oldest
        while let slot = next {
            if self.nodes[slot].isResident { slots.append(slot) }
            next = self.lru.newer(than: slot)
        }
        return slots
    }

    private func outsider(of policy: Int, sparing spared: Int) -> Int? {
        guard let oldest = self.outsiders[policy].oldest() else { return nil }
        return oldest == spared ? self.outsiders[policy].newer(than: oldest) : oldest
    }

    // MARK: The simulated policies

    private mutating func request(_ slot: Int) {
        let hash = self.directory.hash(of: slot)
        let node = self.nodes[slot]
        var hits: UInt = 0
        if self.lru.request(slot, hash: hash, weight: node.weight, lost: &self.lost) { hits |= 1 }
        self.settle(policy: 0)
        if self.fifo.request(slot, hash: hash, weight: node.weight, lost: &self.lost) { hits |= 2 }
        self.settle(policy: 1)
        if self.lfu.request(slot, hash: hash, weight: node.weight, lost: &self.lost) { hits |= 4 }
        self.settle(policy: 2)
        if self.lirs.request(slot, hash: hash, weight: node.weight, lost: &self.lost) { hits |= 8 }
        self.settle(policy: 3)
        self.contest.didRequest(hits: hits, wasHit: node.isResident, entryCount: self.count)
        guard hits != 15 else { return }
        for policy in 0..<4 where hits >> UInt(policy) & 1 == 0 && self.outsiders[policy].contains(slot) {
            self.outsiders[policy].remove(slot)
            if !self.holds(slot, policy) { self.outsiders[policy].append(slot) }
        }
    }

    /// Records the entries that one policy has evicted.
    @inline(__always)
    private mutating func settle(policy: Int) {
        if !self.lost.isEmpty { self.settleLost(policy: policy) }
    }

    private mutating func settleLost(policy: Int) {
        for index in self.lost.indices {
            let slot = Int(self.lost[index])
            if !self.nodes[slot].isResident {
                self.release(slot)
            } else if !self.holds(slot, policy), !self.outsiders[policy].contains(slot) {
                self.outsiders[policy].append(slot)
            }
        }
        self.lost.removeAll(keepingCapacity: true)
    }

    private func holds(_ slot: Int, _ policy: Int) -> Bool {
        switch policy {
        case 0: self.lru.holds(slot)
        case 1: self.fifo.holds(slot)
        case 2: self.lfu.holds(slot)
        default: self.lirs.holds(slot)
        }
    }

    private mutating func forget(_ slot: Int) {
        self.lru.forget(slot)
        self.fifo.forget(slot)
        self.lfu.forget(slot)
        self.lirs.forget(slot)
    }

    private mutating func leave(_ slot: Int) {
        guard self.nodes[slot].isResident else { return }
        self.nodes[slot].isResident = false
        self.count -= 1
        if self.lastUsed == slot { self.lastUsed = -1 }
        for policy in 0..<4 where self.outsiders[policy].contains(slot) { self.outsiders[policy].remove(slot) }
    }

    /// Frees the slot of an entry that has left the cache, if no policy remembers it.
    private mutating func release(_ slot: Int) {
        guard self.nodes[slot].weight > 0, !self.lru.remembers(slot), !self.fifo.remembers(slot),
            !self.lfu.remembers(slot), !self.lirs.remembers(slot)
        else { return }
        self.nodes[slot].weight = 0
        self.directory.remove(slot)
    }
}
