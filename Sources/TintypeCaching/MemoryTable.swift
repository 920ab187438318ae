import TintypeImage

/// The state of a memory tier: entries, their order and their sum.
///
/// The cache guards it with a lock.
///
/// Whatever leaves the table is handed back to the caller, who releases it after letting go of
/// the lock: freeing a picture takes long.
struct MemoryTable: Sendable {
    struct Entry: Sendable {
        let key: CacheKey
        let image: Image
        let metadata: EntryMetadata?
        let cost: Int
        /// Seconds since the reference date, or infinity.
        let expiresAt: Double
    }

    private var positions: [CacheKey: Int] = [:]
    private var slots: [Entry?] = []
    private var freeSlots: [Int] = []
    private var policy = EvictionPolicy()
    private(set) var statistics = MemoryStatistics()
    private(set) var costLimit: Int
    private(set) var countLimit: Int?

    init(costLimit: Int, countLimit: Int?) {
        self.costLimit = costLimit
        self.countLimit = countLimit
    }

    // MARK: Reading

    /// The slot of `key`, counted as a hit and marked as used; or `nil`, counted as a miss.
    mutating func use(_ key: CacheKey) -> Int? {
        guard let slot = self.positions[key] else {
            self.statistics.misses &+= 1
            return nil
        }
        self.statistics.hits &+= 1
        self.policy.didUse(slot)
        return slot
    }

    /// What is in `slot`.
    subscript(slot: Int) -> Entry? {
        _read { yield self.slots[slot] }
    }

    /// When the entry of `key` ends, or `nil` when there is none.
    func expiry(of key: CacheKey) -> Double? {
        guard let slot = self.positions[key] else { return nil }
        return self.slots[slot]?.expiresAt
    }

    // MARK: Writing

    /// Puts `entry` in and hands back what had to leave for it.
    mutating func insert(_ entry: Entry) -> (outcome: InsertOutcome, removed: [Entry]) {
        if let refusal = self.refusal(of: entry) {
            // The older picture under this key is stale: better none than that.
            return (.refused(refusal), self.remove(entry.key).map { [$0] } ?? [])
        }
        var removed: [Entry] = []
        if let slot = self.positions[entry.key] {
            if let old = self.slots[slot] {
                self.statistics.cost -= old.cost
                removed.append(old)
            }
            self.slots[slot] = entry
            self.policy.didUse(slot)
        } else {
            let slot = self.freeSlots.popLast() ?? self.slots.count
            if slot == self.slots.count { self.slots.append(entry) } else { self.slots[slot] = entry }
            self.positions[entry.key] = slot
            self.policy.didInsert(slot)
            self.statistics.count += 1
        }
        self.statistics.cost += entry.cost
        self.trim(toCost: self.costLimit, count: self.countLimit, into: &removed)
        return (.stored, removed)
    }

    /// Takes the entry of `key` out.
    mutating func remove(_ key: CacheKey) -> Entry? {
        guard let slot = self.positions[key] else { return nil }
        return self.take(slot)
    }

    /// Takes the entry of `key` out when its time was over by `date`, and counts the look-up
    /// that found it as a miss.
    mutating func removeExpired(_ key: CacheKey, by date: Double) -> Entry? {
        self.statistics.hits &-= 1
        self.statistics.misses &+= 1
        guard let slot = self.positions[key], let entry = self.slots[slot], entry.expiresAt <= date else { return nil }
        self.statistics.evictions += 1
        return self.take(slot)
    }

    /// Takes everything out.
    ///
    /// Keeps the counters.
    mutating func removeAll() -> [Entry?] {
        let removed = self.slots
        self.slots = []
        self.positions = [:]
        self.freeSlots = []
        self.policy.didRemoveAll()
        self.statistics.count = 0
        self.statistics.cost = 0
        return removed
    }

    /// Drops entries until they cost at most `cost`.
    mutating func trim(toCost cost: Int) -> [Entry] {
        var removed: [Entry] = []
        self.trim(toCost: cost, count: nil, into: &removed)
        return removed
    }

    /// Sets the limits and drops what is over them.
    mutating func setLimits(cost: Int, count: Int?) -> [Entry] {
        self.costLimit = cost
        self.countLimit = count
        var removed: [Entry] = []
        self.trim(toCost: cost, count: count, into: &removed)
        return removed
    }

    // MARK: Parts

    private func refusal(of entry: Entry) -> InsertOutcome.Refusal? {
        if let countLimit = self.countLimit, countLimit <= 0 { return .countLimitIsZero }
        guard entry.cost > self.costLimit else { return nil }
        return .costOverLimit(cost: entry.cost, limit: self.costLimit)
    }

    private mutating func trim(toCost cost: Int, count: Int?, into removed: inout [Entry]) {
        while self.statistics.cost > cost || self.statistics.count > count ?? .max {
            guard let victim = self.policy.victim(), let entry = self.take(victim) else { return }
            self.statistics.evictions += 1
            removed.append(entry)
        }
    }

    private mutating func take(_ slot: Int) -> Entry? {
        guard let entry = self.slots[slot] else { return nil }
        self.slots[slot] = nil
        self.freeSlots.append(slot)
        self.positions[entry.key] = nil
        self.policy.didRemove(slot)
        self.statistics.count -= 1
        self.statistics.cost -= entry.cost
        return entry
    }
}
