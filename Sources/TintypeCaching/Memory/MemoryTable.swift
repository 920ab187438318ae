import TintypeImage

/// The state of a memory tier: entries, their order and their sum.
///
/// The cache guards it with a lock.
///
/// Whatever leaves the table is handed back to the caller, who releases it after letting go of
/// the lock: freeing a picture takes long.
struct MemoryTable: Sendable {
    /// What is asked for at every hit, close together.
    struct Item: Sendable {
        let image: Image
        let cost: Int
        /// Seconds since the reference date, or infinity.
        let expiresAt: Double
    }

    /// All that is held under a key.
    struct Entry: Sendable {
        let item: Item
        let metadata: EntryMetadata?
    }

    private var table = KeyTable()
    private var items: [Item?] = []
    private var metadata: [EntryMetadata?] = []
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

    /// The item of `key`, counted as a hit and marked as used; or `nil`, counted as a miss.
    mutating func useItem(_ key: CacheKey) -> Item? {
        guard let slot = self.table.slot(of: key) else {
            self.statistics.misses &+= 1
            return nil
        }
        self.statistics.hits &+= 1
        self.policy.didUse(slot)
        return self.items[slot]
    }

    /// The whole entry of `key`, counted and marked like ``useItem(_:)``.
    mutating func useEntry(_ key: CacheKey) -> Entry? {
        guard let item = self.useItem(key), let slot = self.table.slot(of: key) else { return nil }
        return Entry(item: item, metadata: self.metadata[slot])
    }

    /// When the entry of `key` ends, or `nil` when there is none.
    func expiry(of key: CacheKey) -> Double? {
        guard let slot = self.table.slot(of: key) else { return nil }
        return self.items[slot]?.expiresAt
    }

    // MARK: Writing

    /// Puts `entry` in and hands back what had to leave for it.
    mutating func insert(_ entry: Entry, for key: CacheKey) -> (outcome: InsertOutcome, removed: [Entry]) {
        if let refusal = self.refusal(of: entry.item) {
            // The older picture under this key is stale: better none than that.
            return (.refused(refusal), self.remove(key).map { [$0] } ?? [])
        }
        var removed: [Entry] = []
        if let slot = self.table.slot(of: key) {
            if let old = self.items[slot] {
                self.statistics.cost -= old.cost
                removed.append(Entry(item: old, metadata: self.metadata[slot]))
            }
            self.items[slot] = entry.item
            self.metadata[slot] = entry.metadata
            self.policy.didUse(slot)
        } else {
            let slot = self.makeSlot()
            self.items[slot] = entry.item
            self.metadata[slot] = entry.metadata
            self.table.insert(key, slot: slot)
            self.policy.didInsert(slot)
            self.statistics.count += 1
        }
        self.statistics.cost += entry.item.cost
        self.trim(toCost: self.costLimit, count: self.countLimit, into: &removed)
        return (.stored, removed)
    }

    /// Takes the entry of `key` out.
    mutating func remove(_ key: CacheKey) -> Entry? {
        guard let slot = self.table.slot(of: key) else { return nil }
        return self.take(slot)
    }

    /// Takes the entry of `key` out when its time was over by `date`, and counts the look-up
    /// that found it as a miss.
    mutating func removeExpired(_ key: CacheKey, by date: Double) -> Entry? {
        self.statistics.hits &-= 1
        self.statistics.misses &+= 1
        guard let slot = self.table.slot(of: key), let item = self.items[slot], item.expiresAt <= date
        else { return nil }
        self.statistics.evictions += 1
        return self.take(slot)
    }

    /// Takes everything out.
    ///
    /// Keeps the counters.
    mutating func removeAll() -> (items: [Item?], metadata: [EntryMetadata?]) {
        let removed = (self.items, self.metadata)
        self.items = []
        self.metadata = []
        self.table = KeyTable()
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

    private func refusal(of item: Item) -> InsertOutcome.Refusal? {
        if let countLimit = self.countLimit, countLimit <= 0 { return .countLimitIsZero }
        guard item.cost > self.costLimit else { return nil }
        return .costOverLimit(cost: item.cost, limit: self.costLimit)
    }

    private mutating func makeSlot() -> Int {
        if let slot = self.freeSlots.popLast() { return slot }
        self.items.append(nil)
        self.metadata.append(nil)
        return self.items.count - 1
    }

    private mutating func trim(toCost cost: Int, count: Int?, into removed: inout [Entry]) {
        while self.statistics.cost > cost || self.statistics.count > count ?? .max {
            guard let victim = self.policy.victim(), let entry = self.take(victim) else { return }
            self.statistics.evictions += 1
            removed.append(entry)
        }
    }

    private mutating func take(_ slot: Int) -> Entry? {
        guard let item = self.items[slot] else { return nil }
        let entry = Entry(item: item, metadata: self.metadata[slot])
        self.items[slot] = nil
        self.metadata[slot] = nil
        self.table.remove(slot)
        self.freeSlots.append(slot)
        self.policy.didRemove(slot)
        self.statistics.count -= 1
        self.statistics.cost -= item.cost
        return entry
    }
}
