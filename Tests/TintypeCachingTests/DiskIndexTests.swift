import Testing

@testable import TintypeCaching

@Suite struct DiskIndexTests {
    private let digests = (0..<5).map { KeyDigest(CacheKey("\($0)")) }

    private func record(_ number: Int, _ byteCount: Int, usedAt: Double) -> DiskIndex.Record {
        DiskIndex.Record(digest: self.digests[number], byteCount: byteCount, usedAt: usedAt)
    }

    private func makeReadIndex(_ records: [DiskIndex.Record]) -> DiskIndex {
        var index = DiskIndex()
        index.beginReading()
        index.endReading(records)
        return index
    }

    @Test func readingSortsByUse() {
        let index = self.makeReadIndex([
            self.record(0, 1, usedAt: 3), self.record(1, 2, usedAt: 1), self.record(2, 4, usedAt: 2),
        ])
        #expect(index.digests == [self.digests[1], self.digests[2], self.digests[0]])
        #expect(index.byteCount == 7)
    }

    @Test func storeDuringTheReadingIsNotLost() {
        var index = DiskIndex()
        index.beginReading()
        index.noteUse(self.digests[0], byteCount: 10, usedAt: 5)
        // The reader saw the older file of one, and nothing of the other.
        index.noteUse(self.digests[1], byteCount: 20, usedAt: 6)
        index.endReading([self.record(0, 99, usedAt: 1)])
        #expect(index.digests == [self.digests[0], self.digests[1]])
        #expect(index.byteCount == 30)
    }

    @Test func removalDuringTheReadingIsNotUndone() {
        var index = DiskIndex()
        index.beginReading()
        index.remove(self.digests[0])
        index.endReading([self.record(0, 99, usedAt: 1), self.record(1, 1, usedAt: 1)])
        #expect(index.digests == [self.digests[1]])
    }

    @Test func laterReadingFollowsOtherProcesses() {
        var index = self.makeReadIndex([self.record(0, 1, usedAt: 1), self.record(1, 1, usedAt: 2)])
        index.noteUse(self.digests[1], byteCount: 1, usedAt: 50)
        index.beginReading()
        // 0 is gone, 2 is new, and the file of 1 does not know of its last use.
        index.endReading([self.record(1, 1, usedAt: 2), self.record(2, 8, usedAt: 40)])
        #expect(index.digests == [self.digests[2], self.digests[1]])
        #expect(index.byteCount == 9)
    }

    @Test func roomIsMadeByTheOldestThatIsNotReplaced() throws {
        var index = self.makeReadIndex([self.record(0, 40, usedAt: 1), self.record(1, 40, usedAt: 2)])
        guard case .evict(let victim)? = index.reserve(50, limit: 100, sparing: self.digests[0]) else {
            Issue.record("room was granted")
            return
        }
        #expect(victim.digest == self.digests[1])
        index.remove(victim.digest)
        guard case .granted? = index.reserve(50, limit: 100, sparing: self.digests[0]) else {
            Issue.record("room was refused")
            return
        }
        #expect(index.reservedByteCount == 50)
        index.commit(self.digests[0], byteCount: 50, usedAt: 3)
        #expect(index.byteCount == 50)
        #expect(index.reservedByteCount == 0)
    }

    @Test func storeWaitsForOthersWhenOnlyTheyHoldTheRoom() {
        var index = self.makeReadIndex([])
        guard case .granted? = index.reserve(60, limit: 100, sparing: self.digests[0]) else {
            Issue.record("room was refused")
            return
        }
        let early = index.reserve(60, limit: 100, sparing: self.digests[1])
        #expect(early == nil)
        index.release(60)
        let late = index.reserve(60, limit: 100, sparing: self.digests[1])
        #expect(late != nil)
    }

    @Test func beforeTheFirstReadingOnlyOnePercentIsGranted() {
        var index = DiskIndex()
        let isGranted = [6, 4, 1].map { index.reserve($0, limit: 1_000, sparing: self.digests[0]) != nil }
        #expect(isGranted == [true, true, false])
    }

    @Test func recordIsNoLongerCurrentAfterAUse() throws {
        var index = self.makeReadIndex([self.record(0, 1, usedAt: 1)])
        let record = try #require(index.oldest)
        #expect(index.isCurrent(record))
        let isKnown = (index.noteRead(self.digests[0], usedAt: 1), index.noteRead(self.digests[1], usedAt: 1))
        #expect(isKnown == (true, false))
        #expect(!index.isCurrent(record))
    }
}
