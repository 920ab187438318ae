import FoundationEssentials
import Testing
import TintypeImage
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(5))) struct CacheGroupTests {
    private let low = RecordingCache()
    private let middle = RecordingCache()
    private let high = RecordingCache()
    private let key = CacheKey("a")

    private var all: [RecordingCache] { [self.low, self.middle, self.high] }

    private func makeGroup(_ change: (inout CacheGroup.Policies) -> Void = { _ in }) -> CacheGroup {
        var policies = CacheGroup.Policies()
        change(&policies)
        return CacheGroup(self.all, policies: policies)
    }

    private func fill(_ caches: [RecordingCache]) async throws {
        for cache in caches { await cache.inner.store(try makeImage(), data: nil, metadata: .sample, for: self.key) }
    }

    // MARK: Looking up

    @Test func `the defaults are those of the peers`() {
        #expect(CacheGroup().policies.query == .serial)
        #expect(CacheGroup().policies.contains == .serial)
        #expect(CacheGroup().policies.store == .highestOnly)
        #expect(CacheGroup().policies.remove == .concurrent)
        #expect(CacheGroup().policies.clear == .concurrent)
    }

    @Test(arguments: [
        (CacheGroup.Policy.serial, true, ["look", "look", ""]),
        (.concurrent, true, ["look", "look", "look"]),
        (.highestOnly, false, ["", "", "look"]),
        (.lowestOnly, true, ["look", "", ""]),
    ])
    func `a query asks whom its policy names`(policy: CacheGroup.Policy, isFound: Bool, calls: [String]) async throws {
        // With the serial policy the middle cache has the entry, so the search ends there.
        try await self.fill(policy == .serial ? [self.middle] : [self.low])
        let group = self.makeGroup { $0.query = policy }
        #expect((try await group.lookUp(self.key) != nil) == isFound)
        // The serial search begins at the highest cache and ends at the hit.
        let expected = policy == .serial ? ["", "look", "look"] : calls
        #expect(self.all.map(\.calls) == expected)
    }

    @Test func `an entry that is removed while it is looked up is found once`() async throws {
        let group = self.makeGroup()
        for cache in self.all { cache.isForgetful = true }
        try await self.fill([self.middle])
        #expect(group.memoryImage(for: self.key) != nil)
        #expect(group.memoryImage(for: self.key) == nil)
        try await self.fill([self.middle])
        #expect(group.memoryEntry(for: self.key) != nil)
        try await self.fill([self.middle])
        #expect(group.peekMemoryEntry(for: self.key) != nil)
        self.high.diskEntry = DiskEntry(data: makeData(10), metadata: .sample, storedAt: Date())
        #expect(group.readyEntry(for: self.key) != nil)
        #expect(group.readyEntry(for: self.key) == nil)
    }

    @Test func `the highest that has it answers`() async throws {
        try await self.fill([self.low, self.high])
        let group = self.makeGroup()
        let entry = try #require(group.memoryEntry(for: self.key))
        #expect(entry.image.pixels === self.high.inner.memory.image(for: self.key)?.pixels)
        #expect(group.memoryImage(for: CacheKey("b")) == nil)
    }

    @Test(arguments: [
        (CacheGroup.Policy.serial, 2), (.concurrent, 1), (.highestOnly, 2), (.lowestOnly, 0),
    ])
    func `an entry that is ready comes from where a query may find it`(policy: CacheGroup.Policy, index: Int) {
        let group = self.makeGroup { $0.query = policy }
        #expect(group.readyEntry(for: self.key) == nil)
        // The cache above may have an entry that is not ready.
        if index > 0 { self.all[index - 1].diskEntry = DiskEntry(data: Data([0]), metadata: .init(), storedAt: Date()) }
        #expect((group.readyEntry(for: self.key) != nil) == (policy == .concurrent))
        self.all[index].diskEntry = DiskEntry(data: Data([1]), metadata: .init(), storedAt: Date())
        #expect(group.readyEntry(for: self.key)?.data == Data([1]))
        #expect(group.readyMetadata(for: self.key) == group.readyEntry(for: self.key)?.metadata)
    }

    @Test(arguments: [
        (CacheGroup.Policy.serial, true), (.concurrent, true), (.highestOnly, false), (.lowestOnly, true),
    ])
    func `metadata is looked for like entries`(policy: CacheGroup.Policy, isFound: Bool) async throws {
        let group = self.makeGroup { $0.query = policy }
        self.low.diskEntry = DiskEntry(data: Data(), metadata: .sample, storedAt: Date())
        #expect(try await group.diskMetadata(for: self.key) == (isFound ? .sample : nil))
        // A cache without its own implementation looks up the whole entry.
        #expect(self.low.calls == (isFound ? "look" : ""))
    }

    @Test func `a peek asks like a query and counts in no cache that tells them apart`() async throws {
        let caches = [CacheActor(disk: nil), CacheActor(disk: nil)]
        let group = CacheGroup(caches)
        await caches[0].store(try makeImage(), data: nil, metadata: .sample, for: self.key)
        #expect(group.peekMemoryEntry(for: self.key)?.metadata == .sample)
        #expect(group.peekMemoryEntry(for: CacheKey("b")) == nil)
        group.policies.query = .highestOnly
        #expect(group.peekMemoryEntry(for: self.key) == nil)
        #expect(await group.statistics().memory.hits == 0)
        #expect(await group.statistics().memory.misses == 0)
        // A cache without its own peek counts it as a look-up.
        #expect(self.low.peekMemoryEntry(for: self.key) == nil)
        #expect(await self.low.statistics().memory.misses == 1)
    }

    @Test func `a group is local while all of its caches are`() {
        let group = CacheGroup()
        #expect(group.isLocal)
        group.add(CacheActor(disk: nil))
        #expect(group.isLocal)
        group.add(self.low)
        #expect(!self.low.isLocal)
        #expect(!group.isLocal)
    }

    @Test(arguments: CacheGroup.Policy.allCases)
    func `contains follows its own policy`(policy: CacheGroup.Policy) async throws {
        try await self.fill([self.low])
        let group = self.makeGroup {
            $0.contains = policy
            $0.clear = .highestOnly
            $0.query = .highestOnly
        }
        #expect(await group.contains(self.key) == (policy != .highestOnly))
        #expect(await group.tiers(holding: self.key, in: .disk) == .none)
    }

    // MARK: Storing and removing

    @Test(arguments: [
        (CacheGroup.Policy.serial, [true, true, true]), (.concurrent, [true, true, true]),
        (.highestOnly, [false, false, true]), (.lowestOnly, [true, false, false]),
    ])
    func `stores and removals reach whom their policy names`(policy: CacheGroup.Policy, reached: [Bool]) async throws {
        let group = self.makeGroup {
            $0.store = policy
            $0.remove = policy
            $0.clear = policy
        }
        #expect(await group.store(try makeImage(), data: nil, metadata: .init(), for: self.key) == .stored)
        #expect(self.all.map { $0.inner.memory.contains(self.key) } == reached)
        let other = CacheKey("b")
        #expect(try await group.storeAndWait(try makeImage(), data: nil, metadata: .init(), for: other) == .stored)
        #expect(self.all.map { $0.inner.memory.contains(other) } == reached)
        #expect(try await group.remove(self.key))
        #expect(self.all.allSatisfy { !$0.inner.memory.contains(self.key) })
        #expect(try await !group.remove(self.key))
        try await self.fill(self.all)
        try await group.removeAll()
        #expect(self.all.map { !$0.inner.memory.contains(self.key) } == reached)
    }

    @Test(arguments: [
        (CacheGroup.Policy.concurrent, [false, false, true]), (.serial, [false, false, true]),
        (.lowestOnly, [false, true, true]), (.highestOnly, [true, true, true]),
    ])
    func `what is stored takes the place of what others have that take part in removals`(
        removal: CacheGroup.Policy,
        left: [Bool]
    ) async throws {
        let group = self.makeGroup { $0.remove = removal }
        let image = try makeImage()
        let stores: [() async throws -> Void] = [
            { await group.store(image, data: nil, metadata: .init(), for: self.key) },
            { try await group.storeAndWait(image, data: nil, metadata: .init(), for: self.key) },
            { await group.keepInMemory(image, metadata: .init(), for: self.key) { false } },
        ]
        for store in stores {
            try await self.fill(self.all)
            try await store()
            #expect(self.all.map { $0.inner.memory.contains(self.key) } == left)
        }
        // This call stores nothing, so it removes nothing.
        try await self.fill(self.all)
        await group.store(image, data: nil, metadata: .init(), for: self.key, in: .disk)
        #expect(self.all.allSatisfy { $0.inner.memory.contains(self.key) })
    }

    @Test(arguments: [CacheGroup.Policy.serial, .concurrent])
    func `a failure of one does not stop the others`(policy: CacheGroup.Policy) async throws {
        let group = self.makeGroup {
            $0.store = policy
            $0.remove = policy
            $0.clear = policy
        }
        self.middle.fails = true
        await #expect(throws: CacheError.self) {
            try await group.storeAndWait(try makeImage(), data: nil, metadata: .init(), for: self.key)
        }
        #expect(self.low.inner.memory.contains(self.key))
        #expect(self.high.inner.memory.contains(self.key))
        await #expect(throws: CacheError.self) { try await group.remove(self.key) }
        #expect(!self.low.inner.memory.contains(self.key))
        await #expect(throws: CacheError.self) { try await group.removeAll() }
    }

    // MARK: The group itself

    @Test(arguments: CacheGroup.Policy.allCases)
    func `an empty group answers`(policy: CacheGroup.Policy) async throws {
        let group = CacheGroup(
            policies: .init(query: policy, contains: policy, store: policy, remove: policy, clear: policy)
        )
        #expect(group.memoryImage(for: self.key) == nil)
        #expect(try await group.lookUp(self.key) == nil)
        #expect(await !group.contains(self.key))
        #expect(await group.store(try makeImage(), data: nil, metadata: .init(), for: self.key) == nil)
        #expect(try await group.storeAndWait(nil, data: nil, metadata: .init(), for: self.key) == nil)
        #expect(try await !group.remove(self.key))
        try await group.removeAll()
        await group.waitForPendingStores()
    }

    @Test func `statistics are those of all caches together`() async throws {
        let folders = try (0..<2).map { _ in try ScratchFolder() }
        let caches = folders.map { CacheActor(disk: DiskCache(.init(directory: $0.url))) }
        let group = CacheGroup(caches)
        for cache in caches {
            try await cache.storeAndWait(makeImage(), data: makeData(10), metadata: .init(), for: self.key)
        }
        _ = try await group.lookUp(self.key)
        let anyCache: any ImageCache = group
        let statistics = await anyCache.statistics()
        #expect(statistics.memory.count == 2)
        #expect(statistics.memory.hits == 1)
        #expect(statistics.disks.map(\.directory) == [folders[1].path, folders[0].path])
        #expect(statistics.disks.map(\.entryCount) == [1, 1])
        #expect(statistics.lastReadError == nil)
    }

    @Test func `the one that was added last is the highest`() async throws {
        let group = CacheGroup()
        for cache in self.all { group.add(cache) }
        await group.store(try makeImage(), data: nil, metadata: .init(), for: self.key)
        #expect(self.high.inner.memory.contains(self.key))
        group.caches = [self.high, self.low]
        await group.store(try makeImage(), data: nil, metadata: .init(), for: CacheKey("b"))
        #expect(self.low.inner.memory.contains(CacheKey("b")))
    }
}
