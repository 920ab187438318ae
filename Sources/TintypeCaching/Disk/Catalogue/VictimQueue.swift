/// The entries that are to go next, the least recently used first.
///
/// The catalogue has no order, so that a use costs one word. Instead the oldest part of it is picked
/// out and sorted from time to time, off the path of requests where the catalogue is large; an
/// entry that was used since it was picked is passed over.
struct VictimQueue: Sendable {
    /// A catalogue up to this size is searched whole when it is needed: it takes 0.1 ms.
    static let smallSlotCount = 16_384
    /// The slots of a larger one that a request may look at.
    static let stepSlotCount = 4_096

    private var records: [CatalogueRecord] = []
    private var next = 0
    private var hand = 0

    /// Whether the queue should be filled again soon.
    var isLow: Bool { self.records.count - self.next < self.records.count / 4 + 64 }

    /// Puts the oldest entries of a catalogue in, which were picked without a lock.
    mutating func fill(with records: [CatalogueRecord]) {
        self.records = records
        self.next = 0
    }

    /// The entry that is to go next, unless there is none but `spared`; the caller holds the lock.
    mutating func takeVictim(in region: CatalogueRegion, sparing spared: EntryName?, now: Double) -> CatalogueRecord? {
        var isSpared = false
        for attempt in 0..<3 {
            while self.next < self.records.count {
                let candidate = self.records[self.next]
                self.next += 1
                guard let (_, current) = region.slot(of: candidate.name), current.usedAt == candidate.usedAt else {
                    continue
                }
                if candidate.name != spared { return current }
                isSpared = true
            }
            guard attempt < 2 else { break }
            self.search(region, now: now)
        }
        // The older value of what is about to be stored goes last.
        guard let spared, isSpared || region.slotCount <= Self.smallSlotCount else { return nil }
        return region.slot(of: spared)?.record
    }

    /// The entry that is to go next, if its last use was not after `limit`; the caller holds the lock.
    mutating func takeOldest(in region: CatalogueRegion, usedUpTo limit: UInt64, now: Double) -> CatalogueRecord? {
        for attempt in 0..<2 {
            while self.next < self.records.count {
                let candidate = self.records[self.next]
                // The rest is younger still.
                if candidate.usedAt > limit { return nil }
                self.next += 1
                if let (_, current) = region.slot(of: candidate.name), current.usedAt == candidate.usedAt {
                    return current
                }
            }
            if attempt == 0 { self.search(region, now: now) }
        }
        return nil
    }

    private mutating func search(_ region: CatalogueRegion, now: Double) {
        if region.slotCount <= Self.smallSlotCount {
            return self.fill(with: Self.oldest(of: region, 0..<region.slotCount, part: 8, now: now))
        }
        // The queue was not filled in time: the oldest of a part, and the next part next time.
        let slots = region.slotCount
        for _ in 0..<(slots / Self.stepSlotCount + 1) {
            let start = self.hand >= slots ? 0 : self.hand
            let end = min(start + Self.stepSlotCount, slots)
            self.hand = end
            self.fill(with: Self.oldest(of: region, start..<end, part: 32, now: now))
            if !self.records.isEmpty { return }
        }
    }

    /// The oldest entries of some slots, in the order of their last use: one of `part`, or all
    /// where there are few.
    static func oldest(
        of region: CatalogueRegion,
        _ slots: Range<Int>,
        part: Int,
        now: Double
    ) -> [CatalogueRecord] {
        // A use that lies ahead of the clock is none.
        let latest = CatalogueRecord.ticks(now + 60)
        let age = { (record: CatalogueRecord) in record.usedAt > latest ? 0 : record.usedAt }
        let limit = self.quantile(of: region, slots, part: part, age: age)
        var found: [CatalogueRecord] = []
        _ = region.forEachRecord(in: slots) { if age($0) <= limit { found.append($0) } }
        return found.sorted { age($0) < age($1) }
    }

    /// The last use that about one of `part` entries is older than, from a sample.
    private static func quantile(
        of region: CatalogueRegion,
        _ slots: Range<Int>,
        part: Int,
        age: (CatalogueRecord) -> UInt64
    ) -> UInt64 {
        var sample: [UInt64] = []
        // Names are hashes, so any run of slots is a fair sample.
        let count = min(slots.count, 8_192)
        _ = region.forEachRecord(in: slots.lowerBound..<slots.lowerBound + count) { sample.append(age($0)) }
        guard sample.count > 64 else { return .max }
        sample.sort()
        return sample[max(32, sample.count / part)]
    }
}
