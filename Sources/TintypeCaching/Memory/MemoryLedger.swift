import FoundationEssentials
import TintypeImage

/// Decides what a memory tier holds: limits, order, sums, and every change of its table.
///
/// A change of the cache holds the ledger's lock throughout, so that sums are exact. What leaves the
/// table is handed back, to be released after the lock: freeing an image takes long.
struct MemoryLedger: Sendable {
    private(set) var limits: MemoryLimits
    /// The counters; hits and misses of the stripes are not among them.
    private(set) var statistics = MemoryStatistics()
    private let keepsWeakly: Bool
    private var policy: EvictionPolicy
    /// The entries in the table whose time ends.
    private var mortalCount = 0
    /// Whether expired entries are looked for from time to time.
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

    /// Tells the policy of look-ups, in their order.
    mutating func note(_ collect: (inout [AccessBuffer.Access]) -> Void) {
        collect(&self.accesses)
        // Those of one thread are in order; those of several are in pieces.
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

    /// Begins the lifetime of an entry that was read at `time` anew.
    func extendLife(of key: CacheKey, at time: Double, in table: inout MemoryTable) {
        if let slot = table.slot(of: key) { table.extendLife(in: slot, at: time) }
    }

    /// Takes the entry of `key` out, if its time was over at `time`; the look-up that found it was no hit.
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

    /// Takes out the entries in some slots of the table whose time was over at `time`.
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

    /// Whether looking for expired entries has to begin; the caller does it then.
    mutating func beginsSweeping() -> Bool {
        guard self.mortalCount > 0, !self.isSweeping else { return false }
        self.isSweeping = true
        return true
    }

    /// Whether looking for expired entries goes on: there are some whose time will end.
    mutating func continuesSweeping() -> Bool {
        self.isSweeping = self.mortalCount > 0
        return self.isSweeping
    }

    /// Brings the entry of `key` back that left the cache and is alive; or finds the one that came meanwhile.
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

    /// Puts `entry` in and hands back what had to leave for it.
    mutating func insert(
        _ entry: MemoryEntry,
        life: EntryLife,
        for key: CacheKey,
        in table: inout MemoryTable
    ) -> (outcome: InsertOutcome, removed: [MemoryEntry]) {
        if let refusal = self.limits.refusal(ofCost: entry.cost(under: key)) {
            self.statistics.refusals += 1
            // The older image under this key is stale: better none than that.
            return (.refused(refusal), self.remove(key, in: &table).map { [$0] } ?? [])
        }
        table.weak.remove(key)
        // The policy keeps what it knows of the key.
        let old = table.slot(of: key).flatMap { self.take($0, in: &table) { _, _ in }?.entry }
        let removed = self.add(entry, life, key, in: &table)
        return (.stored, old.map { removed + [$0] } ?? removed)
    }

    /// Takes the entry of `key` out, and forgets it.
    mutating func remove(_ key: CacheKey, in table: inout MemoryTable) -> MemoryEntry? {
        let weak = table.weak.take(key)?.entry
        guard let slot = table.slot(of: key) else { return weak }
        return self.take(slot, in: &table) { $0.remove($1) }?.entry
    }

    /// Takes everything out, and forgets it.
    mutating func removeAll(in table: inout MemoryTable) -> [MemoryEntry] {
        let removed = table.removeAll()
        self.policy = EvictionPolicy(capacity: self.limits.capacity)
        self.tableSlots = SlotTable(-1)
        self.statistics.count = 0
        self.statistics.cost = 0
        self.mortalCount = 0
        return removed
    }

    /// Drops entries, those used longest ago first, until the rest costs at most `cost`.
    mutating func trim(toCost cost: Int, in table: inout MemoryTable) -> [MemoryEntry] {
        self.trim(to: MemoryLimits(cost: cost, count: nil), in: &table)
    }

    /// Sets the limits and drops what is over them.
    mutating func setLimits(_ limits: MemoryLimits, in table: inout MemoryTable) -> [MemoryEntry] {
        let removed = self.trim(to: limits, in: &table)
        // Weights and capacity are other ones: the policies start anew, with the entries in their order.
        let slots = self.policy.residentsByAge().map { Int(self.tableSlots[$0]) }
        self.limits = limits
        self.policy = EvictionPolicy(capacity: limits.capacity)
        self.tableSlots = SlotTable(-1)
        for slot in slots { self.enrol(slot, in: &table) }
        return removed
    }

    // MARK: Parts

    /// Puts an entry under a key that has none, and drops what is over the limits.
    private mutating func add(
        _ entry: MemoryEntry,
        _ life: EntryLife,
        _ key: CacheKey,
        in table: inout MemoryTable
    ) -> [MemoryEntry] {
        let cost = entry.cost(under: key)
        let policySlot = self.policy.insert(hash: key.hash, weight: self.limits.weight(ofCost: cost))
        var removed: [MemoryEntry] = []
        // Two keys with one hash, which does not happen, have one place.
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

    /// Makes an entry of the table known to a new policy.
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

/// The limits of a memory tier, and how heavy an entry is under them.
struct MemoryLimits: Sendable {
    let cost: Int
    let count: Int?

    /// The entries that the cache holds at most.
    ///
    /// Even without a limit there are no more than one for each 512 bytes of the cost limit, which is about
    /// what an entry takes beside its pixels: many tiny images must not fill the memory uncounted. A small
    /// cache may hold 1,024 of them all the same.
    private var countBound: Int { min(self.count ?? .max, max(self.cost / 512, 1_024)) }

    /// Whether so much fits.
    func admits(cost: Int, count: Int) -> Bool {
        cost <= self.cost && count <= self.countBound
    }

    /// The most that ``weight(ofCost:)`` of all entries may come to.
    ///
    /// Low enough that sums of a few can't overflow.
    var capacity: Int { min(max(self.cost, 1), 1 << 60) }

    /// What an entry weighs for the policy, which knows one limit only: the larger of its two shares.
    func weight(ofCost cost: Int) -> Int {
        max(cost, self.capacity / max(self.countBound, 1), 1)
    }

    /// Why an entry can't be held at all, if it can't.
    func refusal(ofCost cost: Int) -> InsertOutcome.Refusal? {
        if let count = self.count, count <= 0 { return .countLimitIsZero }
        guard cost > self.cost else { return nil }
        return .costOverLimit(cost: cost, limit: self.cost)
    }
}
