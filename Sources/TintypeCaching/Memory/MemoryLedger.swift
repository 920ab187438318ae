// SPDX-License-Identifier: Apache-2.0

/// The bookkeeping of a memory tier: limits, eviction order and sums.
///
/// The ledger makes every change of the table. A change of the cache holds the ledger's lock throughout, so that sums
/// are exact. Freeing an image takes long, so functions return the removed entries and the caller releases them after
/// the lock.
struct MemoryLedger: Sendable {
    private(set) var limits: MemoryLimits
    /// The counters, without the hits and misses that the stripes count.
    private(set) var statistics = MemoryStatistics()
    private let keepsWeakly: Bool
    private var policy: EvictionPolicy
    /// The number of entries in the table that will expire.
    private var mortalCount = 0
    /// Whether a task removes expired entries periodically.
    private var isSweeping = false
    /// The slot in the table for each slot of the policy, or -1.
    private var tableSlots = SlotTable<Int32>(-1)
    private var accesses: [AccessBuffer.Access] = []

    init(limits: MemoryLimits, keepsWeakly: Bool) {
        self.limits = limits
        self.keepsWeakly = keepsWeakly
        self.policy = EvictionPolicy(capacity: limits.capacity)
    }

    // MARK: Reading

    /// Passes look-ups to the policy in their order.
    mutating func note(_ collect: (inout [AccessBuffer.Access]) -> Void) {
        collect(&self.accesses)
        // Each thread's look-ups are in order, but several threads' need sorting.
        if !self.isSorted { self.accesses.sort { $0.ticks < $1.ticks } }
        for access in self.accesses where self.policy.isResident(Int(access.slot), hash: access.hash) {
            self.policy.use(Int(access.slot))
        }
        self.accesses.removeAll(keepingCapacity: true)
    }

    private var isSorted: Bool {
        var last: UInt64 = 0
        for access in self.accesses {
            if access.ticks < last { return false }
            last = access.ticks
        }
        return true
    }

    /// Extends the lifetime of an entry that was read at `time`.
    func extendLife(of key: CacheKey, at time: Double, in table: inout MemoryTable) {
        if let slot = table.slot(of: key) { table.extendLife(in: slot, at: time) }
    }

    /// Removes the entry of `key` if it has expired at `time`, and turns the hit of its look-up into a miss.
    mutating func removeExpired(
        _ key: CacheKey,
        at time: Double,
        countsMiss: Bool,
        in table: inout MemoryTable
    ) -> MemoryEntry? {
        self.statistics.hits -= 1
        if countsMiss { self.statistics.misses += 1 }
        guard let slot = table.slot(of: key), table.mark(in: slot).life.isOver(at: time) else { return nil }
        self.statistics.expirations += 1
        return self.take(slot, in: &table) { $0.evict($1) }?.entry
    }

    /// Removes the entries in a range of slots that have expired at `time`.
    mutating func removeExpired(
        in slots: Range<Int>,
        at time: Double,
        in table: inout MemoryTable
    ) -> [MemoryEntry] {
        var removed: [MemoryEntry] = []
        for slot in slots.clamped(to: 0..<table.slotCount) where table.mark(in: slot).life.isOver(at: time) {
            guard let taken = self.take(slot, in: &table, telling: { $0.evict($1) }) else { continue }
            self.statistics.expirations += 1
            removed.append(taken.entry)
        }
        return removed
    }

    /// Returns whether the caller must start to remove expired entries periodically.
    mutating func beginsSweeping() -> Bool {
        guard self.mortalCount > 0, !self.isSweeping else { return false }
        self.isSweeping = true
        return true
    }

    /// Returns whether to go on with the removal, because other entries will expire.
    mutating func continuesSweeping() -> Bool {
        self.isSweeping = self.mortalCount > 0
        return self.isSweeping
    }

    /// Finds the evicted entry of `key` that is in use elsewhere and stores it again, or finds a newer entry.
    mutating func revive(
        _ key: CacheKey,
        at time: Double,
        countsMiss: Bool,
        in table: inout MemoryTable
    ) -> (found: MemoryEntry?, removed: [MemoryEntry]) {
        if let slot = table.slot(of: key) {
            self.statistics.hits += 1
            return (table.entry(in: slot), [])
        }
        guard let (entry, oldLife) = table.weak.take(key), !oldLife.isOver(at: time) else {
            if countsMiss { self.statistics.misses += 1 }
            return (nil, [])
        }
        var life = oldLife
        life.extend(at: time)
        self.statistics.hits += 1
        self.statistics.weakHits += 1
        guard self.limits.refusal(ofCost: entry.cost(under: key)) == nil else {
            table.weak.insert(entry, life: life, for: key)
            return (entry, [])
        }
        return (entry, self.add(entry, life, key, in: &table))
    }

    // MARK: Writing

    /// Stores `entry`, and returns the entries that were replaced or evicted.
    mutating func insert(
        _ entry: MemoryEntry,
        life: EntryLife,
        for key: CacheKey,
        in table: inout MemoryTable
    ) -> (outcome: InsertOutcome, removed: [MemoryEntry]) {
        if let refusal = self.limits.refusal(ofCost: entry.cost(under: key)) {
            self.statistics.refusals += 1
            // The older image for this key is stale, so remove it.
            return (.refused(refusal), self.remove(key, in: &table).map { [$0] } ?? [])
        }
        table.weak.remove(key)
        // The policy retains its history of the key.
        let old = table.slot(of: key).flatMap { self.take($0, in: &table) { _, _ in }?.entry }
        let removed = self.add(entry, life, key, in: &table)
        return (.stored, old.map { removed + [$0] } ?? removed)
    }

    /// Removes the entry of `key`, even if it is in use elsewhere.
    mutating func remove(_ key: CacheKey, in table: inout MemoryTable) -> MemoryEntry? {
        let weak = table.weak.take(key)?.entry
        guard let slot = table.slot(of: key) else { return weak }
        return self.take(slot, in: &table) { $0.remove($1) }?.entry
    }

    /// Removes all entries, even if they are in use elsewhere.
    mutating func removeAll(in table: inout MemoryTable) -> [MemoryEntry] {
        let removed = table.removeAll()
        self.policy = EvictionPolicy(capacity: self.limits.capacity)
        self.tableSlots = SlotTable(-1)
        self.statistics.count = 0
        self.statistics.cost = 0
        self.mortalCount = 0
        return removed
    }

    /// Evicts the least recently used entries until the rest costs at most `cost`.
    mutating func trim(toCost cost: Int, in table: inout MemoryTable) -> [MemoryEntry] {
        self.trim(to: MemoryLimits(cost: cost, count: nil), in: &table)
    }

    /// Changes the limits, and evicts entries that exceed them.
    mutating func setLimits(_ limits: MemoryLimits, in table: inout MemoryTable) -> [MemoryEntry] {
        let removed = self.trim(to: limits, in: &table)
        // Weights and capacity change, so create new policies and insert the entries in their order.
        let slots = self.policy.residentsByAge().map { Int(self.tableSlots[$0]) }
        self.limits = limits
        self.policy = EvictionPolicy(capacity: limits.capacity)
        self.tableSlots = SlotTable(-1)
        for slot in slots { self.enrol(slot, in: &table) }
        return removed
    }

    // MARK: Parts

    /// Stores an entry for a new key, and evicts entries that exceed the limits.
    private mutating func add(
        _ entry: MemoryEntry,
        _ life: EntryLife,
        _ key: CacheKey,
        in table: inout MemoryTable
    ) -> [MemoryEntry] {
        let cost = entry.cost(under: key)
        let policySlot = self.policy.insert(hash: key.hash, weight: self.limits.weight(ofCost: cost))
        var removed: [MemoryEntry] = []
        // Two keys with the same hash, which is next to impossible, share one slot of the policy.
        let other = Int(self.tableSlots[policySlot])
        if other >= 0, let entry = self.take(other, in: &table, telling: { _, _ in })?.entry { removed.append(entry) }
        let mark = MemoryTable.Mark(life: life, policySlot: Int32(policySlot), hash: key.hash)
        let rest = MemoryTable.Rest(
            key: key,
            metadata: entry.metadata,
            frames: entry.frames,
            data: entry.data,
            cost: cost
        )
        self.tableSlots[policySlot] = Int32(table.insert(entry.image, mark, rest))
        self.statistics.count += 1
        self.statistics.cost += cost
        if !life.isEndless { self.mortalCount += 1 }
        while !self.limits.admits(cost: self.statistics.cost, count: self.statistics.count),
            let victim = self.policy.victim(sparing: policySlot)
        {
            self.evict(Int(self.tableSlots[victim]), in: &table, into: &removed)
        }
        return removed
    }

    /// Adds an entry of the table to a new policy.
    private mutating func enrol(_ slot: Int, in table: inout MemoryTable) {
        let weight = self.limits.weight(ofCost: table.cost(in: slot))
        let policySlot = self.policy.insert(hash: table.mark(in: slot).hash, weight: weight)
        self.tableSlots[policySlot] = Int32(slot)
        table.setPolicySlot(policySlot, in: slot)
    }

    private mutating func trim(to limits: MemoryLimits, in table: inout MemoryTable) -> [MemoryEntry] {
        var removed: [MemoryEntry] = []
        guard !limits.admits(cost: self.statistics.cost, count: self.statistics.count) else { return removed }
        for victim in self.policy.residentsByAge() {
            if limits.admits(cost: self.statistics.cost, count: self.statistics.count) { break }
            self.evict(Int(self.tableSlots[victim]), in: &table, into: &removed)
        }
        return removed
    }

    private mutating func evict(_ slot: Int, in table: inout MemoryTable, into removed: inout [MemoryEntry]) {
        guard let taken = self.take(slot, in: &table, telling: { $0.evict($1) }) else { return }
        self.statistics.evictions += 1
        if self.keepsWeakly { table.weak.insert(taken.entry, life: taken.life, for: taken.key) }
        removed.append(taken.entry)
    }

    private mutating func take(
        _ slot: Int,
        in table: inout MemoryTable,
        telling tell: (inout EvictionPolicy, Int) -> Void
    ) -> (entry: MemoryEntry, life: EntryLife, key: CacheKey)? {
        guard let (entry, mark, rest) = table.remove(slot) else { return nil }
        self.tableSlots[Int(mark.policySlot)] = -1
        tell(&self.policy, Int(mark.policySlot))
        self.statistics.count -= 1
        self.statistics.cost -= rest.cost
        if !mark.life.isEndless { self.mortalCount -= 1 }
        return (entry, mark.life, rest.key)
    }
}

/// The limits of a memory tier, and the weights of entries under them.
struct MemoryLimits: Sendable {
    let cost: Int
    let count: Int?

    /// The maximum number of entries.
    ///
    /// Even without a limit it is one entry per 512 bytes of the cost limit. An entry needs about that much in addition
    /// to its pixels, so many tiny images cannot fill the memory uncounted. A small cache may always have 1,024
    /// entries.
    private var countBound: Int { min(self.count ?? .max, max(self.cost / 512, 1_024)) }

    /// Returns whether entries of this total cost and number fit.
    func admits(cost: Int, count: Int) -> Bool {
        cost <= self.cost && count <= self.countBound
    }

    /// The maximum sum of ``weight(ofCost:)`` over all entries, low enough that a few sums cannot overflow.
    var capacity: Int { min(max(self.cost, 1), 1 << 60) }

    /// Returns the weight of an entry for the policy, which has only one limit: the larger of its shares of both
    /// limits.
    func weight(ofCost cost: Int) -> Int {
        max(cost, self.capacity / max(self.countBound, 1), 1)
    }

    /// Returns the reason why an entry of this cost can never fit, or `nil` if it can.
    func refusal(ofCost cost: Int) -> InsertOutcome.Refusal? {
        if let count = self.count, count <= 0 { return .countLimitIsZero }
        guard cost > self.cost else { return nil }
        return .costOverLimit(cost: cost, limit: self.cost)
    }
}
