// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(5))) struct CacheActorTests {
    private let folder: ScratchFolder
    private let cache: CacheActor
    private let key = CacheKey("a")

    init() throws {
        self.folder = try ScratchFolder()
        self.cache = CacheActor(disk: DiskCache(.init(directory: self.folder.url)))
    }

    @Test func `an entry is stored in memory and on disk`() async throws {
        #expect(try await self.cache.entry(for: self.key) == nil)
        let image = try makeImage()
        await self.cache.store(image, data: makeData(10), metadata: .sample, for: self.key)
        let held = try #require(self.cache.memory.entry(for: self.key))
        #expect(held.image.pixels === image.pixels)
        #expect(held.metadata == .sample)
        let stored = try #require(try await self.cache.entry(for: self.key))
        #expect(stored.data == makeData(10))
        #expect(stored.metadata == .sample)
        #expect(stored.tier == "disk")
    }

    @Test func `tiers and files are described by their names`() async throws {
        let tiers: [CacheTiers] = [.none, .memory, .disk, .all]
        #expect(tiers.map { "\($0)" } == ["none", "memory", "disk", "memory, disk"])
        _ = try await self.cache.storeAndWait(nil, data: makeData(10), metadata: .sample, for: self.key, in: .disk)
        let file = try #require(try await self.cache.file(for: self.key))
        #expect("\(file)" == "\(file.path), 10 bytes from \(file.offset) on")
    }

    @Test func `a load that looks, and peeks after its miss, counts as one miss`() async throws {
        let cache = self.cache
        #expect(cache.memory.image(for: self.key, countsMiss: false) == nil)
        #expect(cache.memory.entry(for: self.key) == nil)
        #expect(cache.memory.peek(self.key) == nil)
        await cache.store(try makeImage(), data: nil, metadata: .sample, for: self.key)
        #expect(cache.memory.peek(self.key)?.metadata == .sample)
        let statistics = await cache.statistics()
        #expect(statistics.memory.misses == 1)
        #expect(statistics.memory.hits == 0)
    }

    @Test(arguments: [(CacheTiers.memory, 1, 0), (.disk, 0, 1), (.all, 1, 1), (CacheTiers(), 0, 0)])
    func `store goes to the chosen tiers`(tiers: CacheTiers, memoryCount: Int, diskCount: Int) async throws {
        let outcome = try await self.cache.storeAndWait(
            makeImage(),
            data: makeData(10),
            metadata: .init(),
            for: self.key,
            in: tiers
        )
        #expect((outcome == .stored) == (memoryCount == 1))
        let statistics = await self.cache.statistics()
        #expect(statistics.memory.count == memoryCount)
        #expect(statistics.disks.map(\.entryCount) == [diskCount])
        #expect(await self.cache.contains(self.key, in: .memory) == (memoryCount == 1))
        #expect(await self.cache.contains(self.key, in: .disk) == (diskCount == 1))
        #expect(await self.cache.contains(self.key) == (memoryCount + diskCount > 0))
    }

    @Test func `removal and clearing reach both tiers`() async throws {
        for name in ["a", "b"] {
            try await self.cache.storeAndWait(
                makeImage(),
                data: makeData(10),
                metadata: .init(),
                for: CacheKey(name)
            )
        }
        #expect(try await self.cache.remove(self.key, from: .memory))
        #expect(try await self.cache.remove(self.key))
        #expect(try await !self.cache.remove(self.key))
        try await self.cache.removeAll(from: .memory)
        #expect(await self.cache.contains(CacheKey("b"), in: .disk))
        try await self.cache.removeAll()
        #expect(await !self.cache.contains(CacheKey("b")))
        #expect(self.folder.entryFiles() == [])
    }

    @Test func `disk that cant be read is a miss and not an error`() async throws {
        let url = self.folder.url.appending(path: String(repeating: "n", count: 300))
        let cache = CacheActor(disk: DiskCache(.init(directory: url)))
        #expect(try await cache.entry(for: self.key) == nil)
        let statistics = await cache.statistics()
        #expect(statistics.tiers.map(\.readFailures) == [1])
        #expect(statistics.tiers.first?.lastReadError != nil)
        await #expect(throws: CacheError.self) {
            try await cache.storeAndWait(makeImage(), data: makeData(10), metadata: .init(), for: self.key)
        }
        #expect(cache.memory.image(for: self.key) != nil)
    }

    @Test func `look-ups, stores and removals go on while a look-up is held inside its read`() async throws {
        let reads = HeldReads()
        let cache = CacheActor(
            disk: DiskCache(.init(directory: self.folder.url, laneCount: 2, now: { reads.holdIfAsked() }))
        )
        // Use keys of both lanes. If the file system cannot tell whether a read would block, the held read blocks its
        // lane.
        let keys = (0..<20).map { CacheKey("\($0)") }
        let held = try #require(keys.first { $0.hash.isMultiple(of: 2) })
        let others = keys.filter { !$0.hash.isMultiple(of: 2) }
        for key in [held] + others {
            try await cache.storeAndWait(nil, data: makeData(10), metadata: .init(), for: key)
        }
        let look = Task(executorPreference: ThreadForEachJob()) {
            try await HeldReads.$isAsked.withValue(true) { try await cache.entry(for: held) }
        }
        await until { reads.areHeld }
        for key in others {
            #expect(try await cache.entry(for: key) != nil)
            try await cache.storeAndWait(nil, data: makeData(20), metadata: .init(), for: key)
            #expect(try await cache.remove(key))
        }
        reads.release()
        #expect(try await look.value?.data == makeData(10))
    }

    @Test func `cache without a disk works in memory`() async throws {
        let cache = CacheActor(disk: nil)
        await cache.store(try makeImage(), data: makeData(10), metadata: .init(), for: self.key)
        #expect(cache.memory.image(for: self.key) != nil)
        #expect(try await cache.entry(for: self.key) == nil)
        #expect(await cache.statistics().disks.isEmpty)
        #expect(try await cache.remove(self.key))
    }
}

/// A clock that can block the look-ups of some tasks, because a disk tier reads the time while a file is open.
private final class HeldReads: Sendable {
    private enum State {
        case open
        case held
        case released
    }

    @TaskLocal static var isAsked = false

    private let state = Monitor(State.open)

    var areHeld: Bool { self.state.withLock { $0 == .held } }

    func holdIfAsked() -> Date {
        if Self.isAsked {
            self.state.withLock { if $0 == .open { $0 = .held } }
            _ = self.state.wait { $0 == .released ? true : nil }
        }
        return Date()
    }

    func release() {
        self.state.withLock { $0 = .released }
        self.state.notify()
    }
}

/// An executor that runs each job on its own thread, which may block.
private final class ThreadForEachJob: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        do {
            try POSIXThread.start(name: "held-read") { job.runSynchronously(on: self.asUnownedTaskExecutor()) }.detach()
        } catch {
            job.runSynchronously(on: self.asUnownedTaskExecutor())
        }
    }
}
