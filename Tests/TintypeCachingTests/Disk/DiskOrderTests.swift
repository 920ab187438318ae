// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(5))) struct DiskOrderTests {
    private let folder: ScratchFolder
    private let cache: DiskCache

    init() throws {
        self.folder = try ScratchFolder()
        self.cache = DiskCache(.init(directory: self.folder.url))
    }

    @Test func `stores that wait count with their metadata`() {
        let pending = PendingStores(byteLimit: 1_000_000)
        let metadata = EntryMetadata(extra: ["note": String(repeating: "x", count: 240_000)])
        var accepted = 0
        for index in 0..<1_000 {
            let key = CacheKey("\(index)")
            if case .refused = pending.add(.init(key: key, data: makeData(1), metadata: metadata)) { continue }
            accepted += 1
        }
        #expect(accepted == 4)
        while pending.takeNext() != nil { _ = pending.endItem(isRemoved: false) }
        #expect(pending.count == 0)
        guard case .queued = pending.add(.init(key: CacheKey("a"), data: makeData(999_999), metadata: .init())) else {
            Issue.record("the bytes of stores that were taken out are still counted")
            return
        }
    }

    @Test func `stores that are refused hide the older entries of their keys until these are gone`() {
        let pending = PendingStores(byteLimit: 1_000_000)
        let keys = [CacheKey("a"), CacheKey("b")]
        for key in keys { _ = pending.add(.init(key: key, data: makeData(10), metadata: .init(bodyDigest: 1))) }
        let current = pending.takeNext()
        #expect(current?.key == keys[0])
        pending.refuseAll()
        for key in keys { #expect(pending.item(key)?.isRefused == true) }
        #expect(pending.count == 1)
        // The file that was written meanwhile still exists.
        #expect(!pending.endItem(isRemoved: false))
        #expect(pending.item(keys[0])?.isRefused == true)
        #expect(!pending.endItem(isRemoved: true))
        #expect(pending.item(keys[0]) == nil)
        let next = pending.takeNext()
        #expect(next?.isRefused == true)
        #expect(next?.data.isEmpty == true)
        // A store that begins after the removal is performed.
        _ = pending.add(.init(key: keys[0], data: makeData(10), metadata: .init()))
        #expect(pending.item(keys[0])?.isRefused == false)
    }

    @Test func `a store that a removal of all refused is neither found nor written`() async throws {
        let key = CacheKey("a")
        try await self.cache.store(makeData(10, seed: 1), metadata: .init(bodyDigest: 1), for: key)
        let lane = self.cache.lanes[Int(key.hash % UInt64(self.cache.lanes.count))]
        _ = lane.pending.add(.init(key: key, data: makeData(10, seed: 2), metadata: .init(bodyDigest: 2)))
        lane.pending.refuseAll()
        #expect(self.cache.readyEntry(for: key) == nil)
        #expect(await !self.cache.contains(key))
        #expect(try await self.cache.metadata(for: key) == nil)
        await lane.writeAllPending()
        #expect(self.folder.entryFiles().isEmpty)
        #expect(try await self.cache.entry(for: key) == nil)
    }

    @Test func `read after an enqueued store sees it`() async throws {
        for number in 0..<300 {
            let key = CacheKey("\(number % 20)")
            self.cache.enqueueStore(makeData(1_000, seed: UInt64(number)), metadata: .init(), for: key)
            #expect(try await self.cache.entry(for: key)?.data == makeData(1_000, seed: UInt64(number)))
        }
    }

    @Test func `last of many enqueued stores stays`() async throws {
        let key = CacheKey("a")
        for number in UInt64(0)..<100 {
            self.cache.enqueueStore(makeData(10, seed: number), metadata: .init(), for: key)
        }
        #expect(await self.cache.contains(key))
        await self.cache.waitForPendingStores()
        #expect(self.folder.entryFiles().count == 1)
        #expect(try await self.cache.entry(for: key)?.data == makeData(10, seed: 99))
    }

    @Test func `waiting ends when all is written`() async throws {
        for number in 0..<500 {
            self.cache.enqueueStore(makeData(100), metadata: .init(), for: CacheKey("\(number)"))
        }
        await self.cache.waitForPendingStores()
        #expect(self.folder.entryFiles().count == 500)
    }

    @Test func `removal after an enqueued store leaves nothing`() async throws {
        for number in 0..<100 {
            let key = CacheKey("\(number)")
            self.cache.enqueueStore(makeData(100), metadata: .init(), for: key)
            #expect(try await self.cache.remove(key))
        }
        await self.cache.waitForPendingStores()
        #expect(self.folder.files() == [])
    }

    @Test func `awaited store after an enqueued one wins`() async throws {
        let key = CacheKey("a")
        for _ in 0..<100 {
            self.cache.enqueueStore(makeData(10, seed: 1), metadata: .init(), for: key)
            try await self.cache.store(makeData(10, seed: 2), metadata: .init(), for: key)
            #expect(try await self.cache.entry(for: key)?.data == makeData(10, seed: 2))
        }
    }

    @Test func `clearing drops what waits and keeps what comes after`() async throws {
        for number in 0..<200 {
            self.cache.enqueueStore(makeData(100), metadata: .init(), for: CacheKey("\(number)"))
        }
        try await self.cache.removeAll()
        self.cache.enqueueStore(makeData(100), metadata: .init(), for: CacheKey("after"))
        await self.cache.waitForPendingStores()
        #expect(self.folder.entryFiles().count == 1)
        #expect(await self.cache.contains(CacheKey("after")))
    }

    @Test func `waiting bytes are bounded`() {
        let pending = PendingStores(byteLimit: 100)
        let add = { (name: String, count: Int) in
            pending.add(.init(key: CacheKey(name), data: makeData(count), metadata: .init()))
        }
        // A single store is accepted whatever its size.
        guard case .queuedFirst = add("a", 150) else { Issue.record("the first was not taken"); return }
        guard case .refused(150) = add("b", 1) else { Issue.record("one too many was taken"); return }
        // A replacement only counts the bytes that it adds.
        guard case .queued = add("a", 40) else { Issue.record("the replacement was not taken"); return }
        guard case .queued = add("b", 60) else { Issue.record("what fits was not taken"); return }
        #expect(pending.takeNext()?.data.count == 40)
        #expect(!pending.endWriting())
        #expect(pending.take(CacheKey("b"))?.data.count == 60)
        #expect(pending.takeNext() == nil)
        #expect(pending.endWriting())
        guard case .queuedFirst = add("a", 1) else { Issue.record("the next was not the first"); return }
    }

    @Test(arguments: [nil, 1, 2] as [UInt64?])
    func `a store that is refused leaves no entry of another body`(newBody: UInt64?) async throws {
        let key = CacheKey("a")
        try await self.cache.store(makeData(10), metadata: .init(bodyDigest: 1), for: key)
        let cache = DiskCache(.init(directory: self.folder.url, laneCount: 1, pendingByteLimit: 1))
        // Store while other stores wait for the background writer.
        let isLeft = newBody != 2
        for number in 0..<100 {
            cache.enqueueStore(makeData(1_000), metadata: .init(), for: CacheKey("\(number)"))
            cache.enqueueStore(makeData(1_000), metadata: .init(bodyDigest: newBody), for: key)
            let found = try await cache.entry(for: key)?.metadata.bodyDigest
            #expect(found == newBody || found == nil || isLeft && found == 1)
            // The entry of the same body must stay visible, because otherwise a reload could not find and remove it.
            if newBody == 1 { #expect(found == 1) }
        }
        await cache.waitForPendingStores()
        #expect(await cache.statistics().lastStoreError?.code == .tooManyPendingStores)
        await cache.shutdown()
    }

    @Test func `of a key whose store is refused no older one is written or read`() throws {
        let pending = PendingStores(byteLimit: 1_000)
        func add(_ name: String, _ count: Int, body: UInt64?) -> PendingStores.Addition {
            pending.add(.init(key: CacheKey(name), data: makeData(count), metadata: .init(bodyDigest: body)))
        }
        _ = add("first", 900, body: nil)
        _ = add("a", 10, body: 1)
        guard case .refused = add("a", 1_000, body: 2) else { Issue.record("one too many was taken"); return }
        #expect(pending.item(CacheKey("a"))?.isRefused == true)
        #expect(pending.takeNext()?.data.count == 900)
        #expect(pending.endItem(isRemoved: false))
        let refused = try #require(pending.takeNext())
        #expect(refused.isRefused && refused.metadata.bodyDigest == 2)
        #expect(!pending.endItem(isRemoved: true))
        #expect(pending.takeNext() == nil)
        // The bytes of the refused store no longer count.
        _ = add("b", 500, body: nil)
        guard case .queued = add("c", 500, body: nil) else { Issue.record("bytes are still counted"); return }
    }

    @Test func `shutdown writes what waits and refuses the rest`() async throws {
        for number in 0..<200 {
            self.cache.enqueueStore(makeData(100), metadata: .init(), for: CacheKey("\(number)"))
        }
        await self.cache.shutdown()
        #expect(self.folder.entryFiles().count == 200)
        await self.cache.shutdown()
        let error = await #expect(throws: CacheError.self) { try await self.cache.entry(for: CacheKey("0")) }
        #expect(error?.code == .shutDown)
        self.cache.enqueueStore(makeData(100), metadata: .init(), for: CacheKey("late"))
        #expect(await self.cache.statistics().lastStoreError?.code == .shutDown)
        #expect(await !self.cache.contains(CacheKey("0")))
        #expect(await self.cache.prune() == PruneResult())
        await self.cache.waitForPendingStores()
    }

    @Test func `threads end with the cache`() async {
        await #expect(processExitsWith: .success) {
            let folder = try ScratchFolder()
            var cache: DiskCache? = DiskCache(.init(directory: folder.url, laneCount: 3))
            for number in 0..<50 {
                cache?.enqueueStore(makeData(100), metadata: .init(), for: CacheKey("\(number)"))
            }
            _ = await cache?.statistics()
            await cacheThreads(become: 4)
            await cache?.shutdown()
            await cacheThreads(become: 0)

            cache = DiskCache(.init(directory: folder.url))
            _ = await cache?.statistics()
            try await cache?.store(makeData(100), metadata: .init(), for: CacheKey("a"))
            #expect(cacheThreadCount() > 0)
            cache = nil
            await cacheThreads(become: 0)
        }
    }

    @Test func `many short lived caches come and go`() async throws {
        for number in 0..<100 {
            let cache = DiskCache(.init(directory: self.folder.url))
            cache.enqueueStore(makeData(100), metadata: .init(), for: CacheKey("\(number)"))
            if number % 3 == 0 { _ = try await cache.entry(for: CacheKey("\(number)")) }
            if number % 3 == 1 {
                // A shutdown waits only for a moment for the lock of the folder, which all these caches want.
                await cache.waitForPendingStores()
                await cache.shutdown()
            }
        }
        // A cache without references still writes its waiting stores.
        await until { self.folder.entryFiles().count >= 100 }
    }
}

/// Returns when the number of disk cache threads is `count`, because a joined thread may stay listed for a moment.
private func cacheThreads(become count: Int) async {
    await until { cacheThreadCount() == count }
}

/// Returns the number of threads in this process that belong to a disk cache.
private func cacheThreadCount() -> Int {
    let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    return tasks.count { task in
        guard let name = try? Data(contentsOf: URL(filePath: "/proc/self/task/\(task)/comm")) else { return false }
        return name.starts(with: Data("tintype-".utf8))
    }
}
