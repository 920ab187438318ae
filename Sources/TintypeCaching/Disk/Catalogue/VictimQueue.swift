// SPDX-License-Identifier: Apache-2.0

/// The queue of entries to evict next, least recently used first.
///
/// The catalogue has no order, so that a use changes only one word. Instead the oldest entries are selected and sorted
/// from time to time, for a large catalogue in the background. The queue skips an entry that was used after its
/// selection.
struct VictimQueue: Sendable {
    /// The size up to which a catalogue is searched completely on demand, which takes 0.1 ms.
    static let smallSlotCount = 16_384
    /// The number of slots of a larger catalogue that one request searches.
    static let stepSlotCount = 4_096

    private var records: [CatalogueRecord] = []
    private var next = 0
    private var hand = 0

    /// Whether the queue should be filled again soon.
    var isLow: Bool { self.records.count - self.next < self.records.count / 4 + 64 }

    /// Fills the queue with the oldest entries of a catalogue, which were selected without a lock.
    mutating func fill(with records: [CatalogueRecord]) {
        self.records = records
        self.next = 0
    }

    /// Removes the next entry to evict, unless only `spared` is left; the caller holds the lock.
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
        // As a last resort, evict the older entry of the key that is about to be stored.
        guard let spared, isSpared || region.slotCount <= Self.smallSlotCount else { return nil }
        return region.slot(of: spared)?.record
    }

    /// Removes the next entry to evict if its last use was not after `limit`; the caller holds the lock.
    mutating func takeOldest(in region: CatalogueRegion, usedUpTo limit: UInt64, now: Double) -> CatalogueRecord? {
        for attempt in 0..<2 {
            while self.next < self.records.count {
                let candidate = self.records[self.next]
                let isFromFuture = candidate.usedAt > Self.latest(at: now)
                // The other entries were used even later.
                if candidate.usedAt > limit, !isFromFuture { return nil }
                self.next += 1
                // An entry whose last use is in the future comes first, but does not count as expired.
                if !isFromFuture, let (_, current) = region.slot(of: candidate.name),
                    current.usedAt == candidate.usedAt
                {
                    return current
                }
            }
            if attempt == 0 { self.search(region, now: now) }
        }
        return nil
    }

    /// Returns the latest last use that is possible at `now`, with a minute for clocks that differ.
    private static func latest(at now: Double) -> UInt64 { CatalogueRecord.ticks(now + 60) }

    private mutating func search(_ region: CatalogueRegion, now: Double) {
        if region.slotCount <= Self.smallSlotCount {
            return self.fill(with: Self.oldest(of: region, 0..<region.slotCount, part: 8, now: now))
        }
        // The queue was not filled in time, so use the oldest entries of one part, and of the next part next time.
        let slots = region.slotCount
        for _ in 0..<(slots / Self.stepSlotCount + 1) {
            let start = self.hand >= slots ? 0 : self.hand
            let end = min(start + Self.stepSlotCount, slots)
            self.hand = end
            self.fill(with: Self.oldest(of: region, start..<end, part: 32, now: now))
            if !self.records.isEmpty { return }
        }
    }

    /// Returns the oldest entries of a range of slots, least recently used first.
    ///
    /// It returns about one of `part` entries, or all if there are few.
    static func oldest(
        of region: CatalogueRegion,
        _ slots: Range<Int>,
        part: Int,
        now: Double
    ) -> [CatalogueRecord] {
        // Treat a last use in the future as no use.
        let latest = self.latest(at: now)
        let age = { (record: CatalogueRecord) in record.usedAt > latest ? 0 : record.usedAt }
        let limit = self.quantile(of: region, slots, part: part, age: age)
        var found: [CatalogueRecord] = []
        _ = region.forEachRecord(in: slots) { if age($0) <= limit { found.append($0) } }
        return found.sorted { age($0) < age($1) }
    }

    /// Returns the last use before which about one of `part` entries was used last, from a sample.
    private static func quantile(
        of region: CatalogueRegion,
        _ slots: Range<Int>,
        part: Int,
        age: (CatalogueRecord) -> UInt64
    ) -> UInt64 {
        var sample: [UInt64] = []
        // Names are hashes, so any range of slots is a fair sample.
        let count = min(slots.count, 8_192)
        _ = region.forEachRecord(in: slots.lowerBound..<slots.lowerBound + count) { sample.append(age($0)) }
        guard sample.count > 64 else { return .max }
        sample.sort()
        return sample[max(32, sample.count / part)]
    }
}
