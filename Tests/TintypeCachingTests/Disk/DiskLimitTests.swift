// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(5))) struct DiskLimitTests {
    private let folder: ScratchFolder
    private let clock = TestClock()

    init() throws {
        self.folder = try ScratchFolder()
    }

    private func makeCache(sizeLimit: Int, laneCount: Int = 2) -> DiskCache {
        let clock = self.clock
        return DiskCache(
            .init(directory: self.folder.url, sizeLimit: sizeLimit, laneCount: laneCount, now: { clock.now })
        )
    }

    @Test(arguments: [1, 2, 4])
    func `limit holds while many tasks write`(laneCount: Int) async throws {
        let limit = 200_000
        let cache = self.makeCache(sizeLimit: limit, laneCount: laneCount)
        let folder = self.folder
        let data = makeData(20_000)
        let largest = try await withThrowingTaskGroup(of: Int.self) { group in
            for task in 0..<4 {
                group.addTask {
                    var largest = 0
                    for number in 0..<250 {
                        let key = CacheKey("\(task) \(number)")
                        try await cache.store(data.prefix(1_000 + number * 37 % 9_000), metadata: .init(), for: key)
                        if number % 8 == 0 { largest = max(largest, folder.wholeByteCount()) }
                    }
                    return largest
                }
            }
            return try await group.reduce(0, max)
        }
        #expect(largest <= limit + limit / 100)
        #expect(largest > limit / 2)
        let statistics = await cache.statistics()
        #expect(statistics.byteCount == self.folder.byteCount())
        #expect(statistics.entryCount == self.folder.files().count)
        #expect(statistics.evictions == 1_000 - statistics.entryCount)
    }

    @Test func `least recently used goes first`() async throws {
        let cache = self.makeCache(sizeLimit: 3_500)
        let keys = (0..<4).map { CacheKey("\($0)") }
        for key in keys[0..<3] {
            try await cache.store(makeData(1_000), metadata: .init(), for: key)
            self.clock.advance(by: 1)
        }
        _ = try await cache.entry(for: keys[0])
        try await cache.store(makeData(1_000), metadata: .init(), for: keys[3])
        #expect(try await cache.entry(for: keys[1]) == nil)
        for key in [keys[0], keys[2], keys[3]] { #expect(try await cache.entry(for: key) != nil) }
    }

    @Test func `order of use outlives the process`() async throws {
        let keys = (0..<4).map { CacheKey("\($0)") }
        let first = self.makeCache(sizeLimit: 3_500)
        for key in keys[0..<3] {
            try await first.store(makeData(1_000), metadata: .init(), for: key)
            self.clock.advance(by: 100)
        }
        _ = try await first.entry(for: keys[0])
        let second = self.makeCache(sizeLimit: 3_500)
        try await second.store(makeData(1_000), metadata: .init(), for: keys[3])
        #expect(try await second.entry(for: keys[1]) == nil)
        #expect(try await second.entry(for: keys[0]) != nil)
    }

    @Test func `entry over the whole limit is refused and the old one stays`() async throws {
        let cache = self.makeCache(sizeLimit: 2_000)
        let key = CacheKey("a")
        try await cache.store(makeData(100), metadata: .init(), for: key)
        let error = await #expect(throws: CacheError.self) {
            try await cache.store(makeData(2_000), metadata: .init(), for: key)
        }
        #expect(error?.code == .entryTooLarge)
        #expect(error?.message.contains(self.folder.path) == true)
        #expect(try await cache.entry(for: key)?.data == makeData(100))
        #expect(await cache.statistics().lastStoreError?.code == .entryTooLarge)
    }

    @Test func `overwrite evicts others before its own old value`() async throws {
        let cache = self.makeCache(sizeLimit: 2_500)
        for name in ["a", "b"] {
            try await cache.store(makeData(1_000), metadata: .init(), for: CacheKey(name))
            self.clock.advance(by: 1)
        }
        try await cache.store(makeData(1_200), metadata: .init(), for: CacheKey("a"))
        #expect(try await cache.entry(for: CacheKey("a"))?.data.count == 1_200)
        #expect(try await cache.entry(for: CacheKey("b")) == nil)
    }

    @Test func `opening a folder over the limit trims it`() async throws {
        let first = self.makeCache(sizeLimit: 1 << 20)
        for number in 0..<20 {
            try await first.store(makeData(1_000), metadata: .init(), for: CacheKey("\(number)"))
            self.clock.advance(by: 1)
        }
        let second = self.makeCache(sizeLimit: 5_500)
        await second.waitForHousekeeping()
        let statistics = await second.statistics()
        #expect(statistics.byteCount <= 5_500)
        #expect(statistics.byteCount == self.folder.byteCount())
        #expect(await second.contains(CacheKey("19")))
        #expect(await !second.contains(CacheKey("0")))
    }

    @Test func `prune evicts what other processes added over the limit`() async throws {
        let cache = self.makeCache(sizeLimit: 5_500)
        try await cache.store(makeData(1_000), metadata: .init(), for: CacheKey("mine"))
        let other = self.makeCache(sizeLimit: 1 << 20)
        for number in 0..<9 {
            self.clock.advance(by: 1)
            try await other.store(makeData(1_000), metadata: .init(), for: CacheKey("\(number)"))
        }
        let result = await cache.prune()
        #expect(result.evictedEntries == 5)
        #expect(self.folder.byteCount() <= 5_500)
        #expect(await !cache.contains(CacheKey("mine")))
        #expect(await cache.contains(CacheKey("8")))
    }

    @Test func `entry that another process uses is not the victim`() async throws {
        let cache = self.makeCache(sizeLimit: 2_500)
        for name in ["a", "b"] {
            try await cache.store(makeData(1_000), metadata: .init(), for: CacheKey(name))
            self.clock.advance(by: 100)
        }
        // The first cache still knows this entry as the oldest.
        #expect(try await self.makeCache(sizeLimit: 2_500).entry(for: CacheKey("a")) != nil)
        try await cache.store(makeData(1_000), metadata: .init(), for: CacheKey("c"))
        #expect(await cache.contains(CacheKey("a")))
        #expect(await !cache.contains(CacheKey("b")))
    }
}
