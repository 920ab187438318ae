// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(5))) struct ByteTierTests {
    private let near = RecordingTier("near")
    private let middle = RecordingTier("middle")
    private let far = RecordingTier("far")
    private let key = CacheKey("a")

    private var all: [RecordingTier] { [self.near, self.middle, self.far] }

    /// Returns a cache of the three tiers, whose time budget ends when `sleep` returns.
    private func makeCache(
        _ policies: TierPolicies = TierPolicies(),
        sleep: @escaping @Sendable (Duration) async throws -> Void = { _ in try await Gate().waitUnlessCancelled() }
    ) -> CacheActor {
        let tiers = self.all.map { OrderedTier($0, timeBudget: .seconds(1), sleep: sleep) }
        return CacheActor(tiers: tiers, policies: policies)
    }

    private func store(_ count: Int, in cache: CacheActor) async throws {
        try await cache.storeAndWait(nil, data: makeData(count), metadata: .sample, for: self.key)
    }

    // MARK: Looking up

    @Test(arguments: [
        (TierPolicies.Policy.serial, "middle" as String?, ["entry a", "entry a", ""]),
        (.concurrent, "middle", ["entry a", "entry a", "entry a"]),
        (.nearestOnly, nil, ["entry a", "", ""]),
        (.farthestOnly, nil, ["", "", "entry a"]),
    ])
    func `a query asks the tiers that its policy names`(
        policy: TierPolicies.Policy,
        answer: String?,
        calls: [String]
    ) async throws {
        self.middle[self.key] = makeData(10)
        let cache = self.makeCache(TierPolicies(query: policy))
        if policy == .concurrent {
            self.middle.hold { _ in await until { self.near.calls != "" && self.far.calls != "" } }
        }
        let entry = try await cache.entry(for: self.key)
        #expect(entry?.tier == answer)
        #expect(entry?.data == answer.map { _ in makeData(10) })
        #expect(self.all.map { $0.calls.split(separator: ", store").first.map(String.init) ?? "" } == calls)
        await cache.waitForPendingStores()
    }

    @Test func `a hit in a farther tier fills the nearer ones`() async throws {
        self.far[self.key] = makeData(10)
        let cache = self.makeCache()
        #expect(try await cache.entry(for: self.key)?.tier == "far")
        await cache.waitForPendingStores()
        #expect(self.near[self.key] == makeData(10))
        #expect(self.middle[self.key] == makeData(10))
        #expect(try await cache.entry(for: self.key)?.tier == "near")
        let statistics = await cache.statistics().tiers
        #expect(statistics.map(\.name) == ["near", "middle", "far"])
        #expect(statistics.map(\.hits) == [1, 0, 1])
        #expect(statistics.map(\.misses) == [1, 1, 0])
        #expect(statistics.map(\.fills) == [1, 1, 0])
    }

    @Test(arguments: ["store", "remove", "removeFamily", "removeAll"])
    func `an entry that changes while it is read fills no tier`(change: String) async throws {
        self.far[self.key] = makeData(10)
        let cache = self.makeCache()
        let gate = Gate()
        self.far.hold { if $0.hasPrefix("entry") { await gate.wait() } }
        let look = Task { try await cache.entry(for: self.key) }
        await until { self.far.calls == "entry a" }
        switch change {
        case "store": try await self.store(20, in: cache)
        case "remove": try await cache.remove(self.key)
        case "removeFamily": try await cache.removeFamily(of: self.key)
        default: try await cache.removeAll()
        }
        await gate.open()
        _ = try await look.value
        await cache.waitForPendingStores()
        #expect(self.near[self.key] == (change == "store" ? makeData(20) : nil))
        #expect(self.middle[self.key] == (change == "store" ? makeData(20) : nil))
    }

    @Test func `a disk that is filled stores nothing after a change`() async throws {
        let folder = try ScratchFolder()
        let disk = DiskCache(.init(directory: folder.url))
        disk.enqueueStore(makeData(10), metadata: .sample, for: self.key) { true }
        #expect(try await disk.entry(for: self.key) == nil)
        disk.enqueueStore(makeData(10), metadata: .sample, for: self.key) { false }
        #expect(try await disk.entry(for: self.key)?.data == makeData(10))
        await disk.shutdown()
    }

    @Test func `metadata comes from the nearest tier, and fills none`() async throws {
        self.far[self.key] = makeData(10)
        let cache = self.makeCache()
        #expect(try await cache.metadata(for: self.key) == .sample)
        #expect(self.all.map(\.calls) == ["metadata a", "metadata a", "metadata a"])
        #expect(await cache.contains(self.key))
        #expect(await !cache.contains(CacheKey("b")))
    }

    @Test func `an entry whose expiry has passed is a miss`() async throws {
        let expired = EntryMetadata(expiry: Date(timeIntervalSince1970: 1))
        try await self.near.store(makeData(10), metadata: expired, for: self.key)
        let cache = self.makeCache()
        #expect(try await cache.entry(for: self.key) == nil)
        #expect(try await cache.metadata(for: self.key) == nil)
    }

    @Test func `the file of an entry that only a farther tier has is one of the disk`() async throws {
        let folder = try ScratchFolder()
        let disk = DiskCache(.init(directory: folder.url))
        let cache = CacheActor(tiers: [disk, self.far], timeBudget: .seconds(60))
        #expect(try await cache.file(for: self.key) == nil)
        self.far[self.key] = makeData(10)
        let file = try #require(try await cache.file(for: self.key))
        #expect(file.byteCount == 10)
        await disk.shutdown()
    }

    @Test func `a mark that is taken during a change is never one of a quiet key`() async {
        let changes = KeyChanges()
        let before = changes.mark(of: self.key)
        let during = await changes.counting(self.key) {
            let mark = changes.mark(of: self.key)
            #expect(!changes.isUnchanged(since: before))
            #expect(!changes.isUnchanged(since: mark))
            return mark
        }
        #expect(!changes.isUnchanged(since: during))
        let after = changes.mark(of: self.key)
        #expect(changes.isUnchanged(since: after))
        await changes.counting(nil) { #expect(!changes.isUnchanged(since: after)) }
        #expect(!changes.isUnchanged(since: after))
    }

    // MARK: Storing and removing

    @Test(arguments: [
        (TierPolicies.Policy.serial, [true, true, true]), (.concurrent, [true, true, true]),
        (.nearestOnly, [true, false, false]), (.farthestOnly, [false, false, true]),
    ])
    func `stores and removals reach the tiers that their policy names`(
        policy: TierPolicies.Policy,
        isReached: [Bool]
    ) async throws {
        let cache = self.makeCache(TierPolicies(store: policy, remove: policy, clear: policy))
        try await self.store(10, in: cache)
        #expect(self.all.map { $0[self.key] != nil } == isReached)
        let other = CacheKey("b")
        await cache.store(nil, data: makeData(10), metadata: .sample, for: other)
        await cache.waitForPendingStores()
        #expect(self.all.map { $0[other] != nil } == isReached)
        for tier in self.all { tier[self.key] = makeData(10) }
        #expect(try await cache.remove(self.key))
        #expect(self.all.map { $0[self.key] == nil } == isReached)
        try await cache.removeAll()
        #expect(self.all.map { $0[other] == nil } == [true, true, true])
    }

    @Test func `a store replaces the entries of tiers that do not accept it`() async throws {
        let small = RecordingTier("small", byteLimit: 15)
        let cache = CacheActor(tiers: [small, self.far], timeBudget: .seconds(60))
        try await self.store(10, in: cache)
        #expect(small[self.key] == makeData(10))
        try await self.store(20, in: cache)
        #expect(small[self.key] == nil)
        #expect(self.far[self.key] == makeData(20))
        // A hit fills no tier that does not accept the entry either.
        #expect(try await cache.entry(for: self.key)?.tier == "far")
        await cache.waitForPendingStores()
        #expect(small[self.key] == nil)
    }

    @Test func `changes to one family run in the order of their calls`() async throws {
        let cache = self.makeCache(TierPolicies(store: .nearestOnly, remove: .nearestOnly))
        let gate = Gate()
        self.near.hold { if $0 == "store a" { await gate.wait() } }
        await cache.store(nil, data: makeData(10), metadata: .sample, for: self.key)
        await until { self.near.calls == "store a" }
        await cache.store(nil, data: makeData(10), metadata: .sample, for: self.key.derived("x"))
        await cache.store(nil, data: makeData(10), metadata: .sample, for: CacheKey("b"))
        // The removal has its place before it waits, so the look-up comes after it.
        let removal = Task.immediate { try await cache.removeFamily(of: self.key) }
        await until { self.near.calls == "store a, store b" }
        let look = Task { try await cache.entry(for: self.key) }
        await gate.open()
        #expect(try await removal.value)
        _ = try await look.value
        #expect(self.near[self.key] == nil)
        #expect(self.near[self.key.derived("x")] == nil)
        #expect(self.near.calls.hasPrefix("store a, store b, store a>x, removeFamily a"))
    }

    // MARK: Failures

    @Test func `a tier that fails is a miss, and is counted`() async throws {
        self.near.fails = true
        self.far[self.key] = makeData(10)
        let cache = self.makeCache()
        #expect(try await cache.entry(for: self.key)?.data == makeData(10))
        await cache.waitForPendingStores()
        let statistics = await cache.statistics().tiers
        #expect(statistics.map(\.readFailures) == [1, 0, 0])
        #expect(statistics[0].lastReadError?.code == .tierFailed)
        // The fill of this tier failed as well.
        #expect(statistics.map(\.writeFailures) == [1, 0, 0])
    }

    @Test(arguments: [TierPolicies.Policy.serial, .concurrent])
    func `the failure of one tier does not stop the others`(policy: TierPolicies.Policy) async throws {
        self.middle.fails = true
        let cache = self.makeCache(TierPolicies(store: policy, remove: policy, clear: policy))
        await #expect(throws: CacheError.self) { try await self.store(10, in: cache) }
        #expect(self.near[self.key] != nil)
        #expect(self.far[self.key] != nil)
        await #expect(throws: CacheError.self) { try await cache.remove(self.key) }
        #expect(self.far[self.key] == nil)
        await #expect(throws: CacheError.self) { try await cache.removeAll() }
        #expect(await cache.statistics().tiers.map(\.writeFailures) == [0, 3, 0])
    }

    @Test(arguments: ["store", "remove"])
    func `a tier whose change failed serves no older entry of the family`(change: String) async throws {
        let variant = self.key.derived("x")
        self.near[self.key] = makeData(10)
        self.near[variant] = makeData(5)
        let cache = self.makeCache(TierPolicies(query: .nearestOnly, store: .nearestOnly, remove: .nearestOnly))
        self.near.fails = true
        await #expect(throws: CacheError.self) {
            if change == "store" { try await self.store(20, in: cache) } else { try await cache.remove(self.key) }
        }
        #expect(try await cache.entry(for: variant) == nil)
        self.near.fails = false
        #expect(try await cache.entry(for: variant) == nil)
        #expect(self.near[self.key] == nil)
        // From now on the tier is trusted again.
        try await self.store(30, in: cache)
        #expect(try await cache.entry(for: self.key)?.data == makeData(30))
    }

    @Test func `a store after a failed one removes the family first, and stays`() async throws {
        let variant = self.key.derived("x")
        self.near[variant] = makeData(5)
        let cache = self.makeCache(TierPolicies(query: .nearestOnly, store: .nearestOnly, remove: .nearestOnly))
        self.near.fails = true
        await #expect(throws: CacheError.self) { try await self.store(20, in: cache) }
        self.near.fails = false
        try await self.store(30, in: cache)
        #expect(self.near[variant] == nil)
        #expect(try await cache.entry(for: self.key)?.data == makeData(30))
    }

    @Test func `a read that takes too long is a miss, and is cancelled`() async throws {
        self.near[self.key] = makeData(10)
        let (budget, isCancelled) = (Gate(), Gate())
        let cache = self.makeCache(TierPolicies(query: .nearestOnly)) { _ in try await budget.waitUnlessCancelled() }
        self.near.hold { _ in
            do { try await Gate().waitUnlessCancelled() } catch {
                await isCancelled.open()
                throw error
            }
        }
        let look = Task { try await cache.entry(for: self.key) }
        await until { self.near.calls == "entry a" }
        await budget.open()
        #expect(try await look.value == nil)
        await isCancelled.wait()
        #expect(await cache.statistics().tiers[0].lastReadError?.code == .tierTimedOut)
    }

    @Test func `a read whose tier ignores the cancellation ends all the same`() async throws {
        let (budget, isOver) = (Gate(), Gate())
        let cache = self.makeCache(TierPolicies(query: .nearestOnly)) { _ in try await budget.waitUnlessCancelled() }
        self.near.hold { _ in await isOver.wait() }
        let look = Task { try await cache.entry(for: self.key) }
        await until { self.near.calls == "entry a" }
        await budget.open()
        #expect(try await look.value == nil)
        let cancelled = Task { try await self.makeCache().entry(for: self.key) }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        await isOver.open()
    }

    @Test func `a read does not wait long for an earlier store, and finds its entry later`() async throws {
        let (patience, isStored) = (Gate(), Gate())
        let tier = OrderedTier(self.near, timeBudget: .seconds(60)) { duration in
            try await (duration < .seconds(60) ? patience : Gate()).waitUnlessCancelled()
        }
        let cache = CacheActor(tiers: [tier])
        self.near.hold { if $0 == "store a" { await isStored.wait() } }
        await cache.store(nil, data: makeData(10), metadata: .sample, for: self.key)
        await until { self.near.calls == "store a" }
        let look = Task { try await cache.entry(for: self.key) }
        await patience.open()
        #expect(try await look.value == nil)
        #expect(self.near.calls == "store a")
        await isStored.open()
        await cache.waitForPendingStores()
        #expect(try await cache.entry(for: self.key)?.data == makeData(10))
    }

    @Test func `a read does not wait long for the repair of a suspect family`() async throws {
        let (patience, isRepaired) = (Gate(), Gate())
        let tier = OrderedTier(self.near, timeBudget: .seconds(60)) { duration in
            try await (duration < .seconds(60) ? patience : Gate()).waitUnlessCancelled()
        }
        let cache = CacheActor(tiers: [tier])
        self.near.fails = true
        await #expect(throws: CacheError.self) { try await self.store(10, in: cache) }
        self.near.fails = false
        self.near.hold { if $0 == "removeFamily a" { await isRepaired.wait() } }
        let look = Task { try await cache.entry(for: self.key) }
        await until { self.near.calls.hasSuffix("removeFamily a") }
        await patience.open()
        #expect(try await look.value == nil)
        await isRepaired.open()
        await cache.waitForPendingStores()
        self.near[self.key] = makeData(10)
        #expect(try await cache.entry(for: self.key)?.data == makeData(10))
    }

    @Test func `a store that takes too long leaves no older entry`() async throws {
        self.near[self.key] = makeData(10)
        let (budget, isOver) = (Gate(), Gate())
        let cache = self.makeCache(
            TierPolicies(query: .nearestOnly, store: .nearestOnly, remove: .nearestOnly)
        ) { _ in try await budget.waitUnlessCancelled() }
        self.near.hold { if $0.hasPrefix("store") { await isOver.wait() } }
        let store = Task { try await self.store(20, in: cache) }
        await until { self.near.calls == "store a" }
        await budget.open()
        let error = await #expect(throws: CacheError.self) { try await store.value }
        #expect(error?.code == .tierTimedOut)
        await isOver.open()
        await cache.waitForPendingStores()
        #expect(await cache.statistics().tiers[0].lastWriteError?.code == .tierTimedOut)
    }

    @Test func `reads of a suspect family begin one repair, and a tier runs a limited number of reads`() async throws {
        let cache = self.makeCache(TierPolicies(query: .nearestOnly, store: .nearestOnly, remove: .nearestOnly))
        self.near.fails = true
        await #expect(throws: CacheError.self) { try await self.store(20, in: cache) }
        self.near.fails = false
        let gate = Gate()
        self.near.hold { if $0.hasPrefix("removeFamily") { await gate.wait() } }
        let looks = (0..<300).map { _ in Task { try await cache.entry(for: self.key) } }
        await until { self.near.calls.contains("removeFamily") }
        await until { await cache.statistics().tiers[0].readFailures >= 44 }
        await gate.open()
        for look in looks { #expect(try await look.value == nil) }
        #expect(self.near.calls.split(separator: ", ").count { $0.hasPrefix("removeFamily") } == 1)
    }

    @Test func `reads whose callers have left do not count against the limit of a tier`() async throws {
        let cache = self.makeCache(TierPolicies(query: .nearestOnly))
        self.near[self.key] = makeData(10)
        for _ in 0..<300 {
            let look = Task {
                await Task.yield()
                withUnsafeCurrentTask { $0?.cancel() }
                return try await cache.entry(for: self.key)
            }
            _ = await look.result
        }
        #expect(try await cache.entry(for: self.key)?.data == makeData(10))
    }

    @Test func `a tier that accepts no entry of a key is neither asked nor changed`() async throws {
        let tier = RecordingTier("none", byteLimit: -1)
        let cache = CacheActor(tiers: [tier, self.far], timeBudget: .seconds(60))
        try await self.store(10, in: cache)
        #expect(try await cache.entry(for: self.key)?.tier == "far")
        #expect(try await cache.remove(self.key))
        #expect(tier.calls == "")
    }

    @Test func `a tier of the store policy that refuses an entry loses its older one`() async throws {
        let small = RecordingTier("small", byteLimit: 15)
        let tiers = [self.near, small].map { OrderedTier($0, timeBudget: .seconds(60)) }
        let cache = CacheActor(tiers: tiers, policies: TierPolicies(remove: .nearestOnly))
        try await self.store(10, in: cache)
        try await self.store(20, in: cache)
        #expect(small[self.key] == nil)
    }

    @Test func `stores beyond the bytes that may wait are refused`() async throws {
        let cache = self.makeCache(TierPolicies(store: .nearestOnly, remove: .nearestOnly))
        let gate = Gate()
        self.near.hold { if $0.hasPrefix("store") { await gate.wait() } }
        let large = Data(count: 40 << 20)
        await cache.store(nil, data: large, metadata: .sample, for: CacheKey("b"))
        self.near[self.key] = makeData(10)
        await cache.store(nil, data: large, metadata: .sample, for: self.key)
        await gate.open()
        await cache.waitForPendingStores()
        #expect(await cache.statistics().tiers[0].lastWriteError?.code == .tooManyPendingStores)
        // The next look-up removes the older entry.
        #expect(try await cache.entry(for: self.key) == nil)
        #expect(self.near[self.key] == nil)
        #expect(self.near[CacheKey("b")] == large)
    }

    // MARK: Tiers of one's own

    /// The least that a tier must implement.
    private final class LeastTier: ByteTier {
        let entries = Locked<[CacheKey: ByteEntry]>([:])

        func entry(for key: CacheKey) async throws -> ByteEntry? { self.entries.withLock { $0[key] } }
        func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
            self.entries.withLock { $0[key] = ByteEntry(data: data, metadata: metadata) }
        }
        func remove(_ key: CacheKey) async throws -> Bool {
            self.entries.withLock { $0.removeValue(forKey: key) != nil }
        }
    }

    @Test func `a tier with three functions stores originals only, and loses them with their family`() async throws {
        let tier = LeastTier()
        let cache = CacheActor(tiers: [tier], timeBudget: .seconds(60))
        try await self.store(10, in: cache)
        let variant = self.key.derived("x")
        let refusal = await #expect(throws: CacheError.self) {
            try await cache.storeAndWait(nil, data: makeData(5), metadata: .sample, for: variant)
        }
        #expect(refusal?.code == .entryTooLarge)
        #expect(tier.entries.withLock { Set($0.keys) } == [self.key])
        #expect(try await cache.metadata(for: self.key) == .sample)
        #expect(try await cache.removeFamily(of: variant))
        #expect(tier.entries.withLock { $0.isEmpty })
        let error = await #expect(throws: CacheError.self) { try await cache.removeAll() }
        #expect(error?.code == .tierFailed)
        #expect(await cache.statistics().tiers.map(\.name) == ["LeastTier"])
    }

    private struct Wrapper: ByteTierWrapper {
        let base: any ByteTier
        let didRemove: @Sendable () -> Void

        func remove(_ key: CacheKey) async throws -> Bool {
            self.didRemove()
            return try await self.base.remove(key)
        }
    }

    private struct Redacted: ByteTierWrapper {
        let base: any ByteTier

        func entry(for key: CacheKey) async throws -> ByteEntry? {
            try await self.base.entry(for: key).map { ByteEntry(data: Data(), metadata: $0.metadata) }
        }
    }

    @Test func `a wrapper of reads also applies to loads, and the wrapped tier sees their turns`() async throws {
        self.near[self.key] = makeData(10)
        let cache = CacheActor(tiers: [Redacted(base: self.near)], timeBudget: .seconds(60))
        try await cache.takingTurns {
            let found = try await cache.entry(for: self.key)
            #expect(found?.data.isEmpty == true)
        }
        await cache.waitForPendingStores()
        #expect(self.near.calls == "take a, end a")
        #expect(self.near.turnCount == 0)
    }

    private struct Fallback: ByteTierWrapper {
        let base: any ByteTier
        let other: CacheKey

        func entry(for key: CacheKey) async throws -> ByteEntry? {
            if let entry = try await self.base.entry(for: key) { return entry }
            return try await TierTurn.run(in: nil) { try await self.base.entry(for: self.other) }
        }
    }

    @Test func `a turn ends although a wrapper has found an entry of another key`() async throws {
        self.near[CacheKey("b")] = makeData(10)
        let tier = Fallback(base: self.near, other: CacheKey("b"))
        let cache = CacheActor(tiers: [tier], timeBudget: .seconds(60))
        try await cache.takingTurns {
            let found = try await cache.entry(for: self.key)
            #expect(found?.data == makeData(10))
        }
        await cache.waitForPendingStores()
        #expect(self.near.calls == "take a, entry b, end a")
        #expect(self.near.turnCount == 0)
    }

    @Test func `a wrapper forwards all that it does not change`() async throws {
        let removals = Locked(0)
        let tier = Wrapper(base: self.near) { removals.withLock { $0 += 1 } }
        let cache = CacheActor(tiers: [tier], timeBudget: .seconds(60))
        let variant = self.key.derived("x")
        try await cache.storeAndWait(nil, data: makeData(10), metadata: .sample, for: variant)
        #expect(try await cache.entry(for: variant)?.tier == "near")
        #expect(try await cache.metadata(for: variant) == .sample)
        #expect(try await cache.remove(variant))
        #expect(try await !cache.removeFamily(of: variant))
        try await cache.removeAll()
        #expect(
            self.near.calls
                == "store a>x, entry a>x, metadata a>x, remove a>x, removeFamily a, removeAll"
        )
        #expect(removals.withLock { $0 } == 1)
    }

    @Test func `the stored form of an entry is read back for its key only`() throws {
        let entry = ByteEntry(data: makeData(1_000), metadata: .sample, storedAt: Date(timeIntervalSince1970: 7))
        let encoded = entry.encoded(for: self.key)
        let read = try #require(ByteEntry(encoded: encoded, for: self.key))
        #expect(read.data == entry.data)
        #expect(read.metadata == .sample)
        #expect(read.storedAt == entry.storedAt)
        #expect(read.data.startIndex == 0)
        // A slice has other indices.
        #expect(ByteEntry(encoded: (Data([1, 2]) + encoded).dropFirst(2), for: self.key)?.data == entry.data)
        #expect(ByteEntry(encoded: encoded, for: CacheKey("b")) == nil)
        #expect(ByteEntry(encoded: Data(), for: self.key) == nil)
        #expect(ByteEntry(encoded: encoded + [0], for: self.key) == nil)
        for index in stride(from: 0, to: encoded.count, by: 7) {
            var damaged = encoded
            damaged[index] ^= 0x10
            #expect(ByteEntry(encoded: damaged, for: self.key) == nil, "byte \(index)")
            #expect(ByteEntry(encoded: encoded.prefix(index), for: self.key) == nil, "first \(index) bytes")
        }
    }

    @Test func `metadata is read from the start of the stored form`() throws {
        let encoded = ByteEntry(data: makeData(1_000), metadata: .sample).encoded(for: self.key)
        let size = encoded.count
        #expect(ByteEntry.metadata(start: encoded.prefix(size - 1_000), of: size, for: self.key) == .sample)
        #expect(ByteEntry.metadata(start: encoded, of: size, for: self.key) == .sample)
        #expect(ByteEntry.metadata(start: encoded.prefix(size - 1_001), of: size, for: self.key) == nil)
        #expect(ByteEntry.metadata(start: encoded, of: size + 1, for: self.key) == nil)
        #expect(ByteEntry.metadata(start: encoded, of: size, for: CacheKey("b")) == nil)
        #expect(ByteEntry.metadata(start: Data(), of: 0, for: self.key) == nil)
    }

    // MARK: Turns

    @Test func `the turn of a load ends after its stores`() async throws {
        let cache = CacheActor(tiers: [self.near], timeBudget: .seconds(60))
        let gate = Gate()
        self.near.hold { if $0.hasPrefix("store") { await gate.wait() } }
        try await cache.takingTurns {
            let entry = try await cache.entry(for: self.key)
            #expect(entry == nil)
            await cache.store(nil, data: makeData(10), metadata: .sample, for: self.key, in: .disk)
        }
        await until { self.near.calls == "take a, store a" }
        await gate.open()
        await cache.waitForPendingStores()
        #expect(self.near.calls == "take a, store a, end a")
    }

    @Test func `a load takes no turn for an entry that it finds, and none outside of a load`() async throws {
        self.near[self.key] = makeData(10)
        let cache = CacheActor(tiers: [self.near], timeBudget: .seconds(60))
        try await cache.takingTurns { _ = try await cache.entry(for: self.key) }
        _ = try await cache.entry(for: CacheKey("b"))
        await cache.waitForPendingStores()
        #expect(self.near.calls == "take a, entry b")
    }

    @Test(arguments: ["throws", "is cancelled", "fails to look"])
    func `a turn ends with a load that`(_ end: String) async throws {
        let cache = CacheActor(tiers: [self.near], timeBudget: .seconds(60))
        self.near.fails = end == "fails to look"
        let load = Task {
            try await cache.takingTurns {
                _ = try await cache.entry(for: self.key)
                if end == "is cancelled" { try await Gate().waitUnlessCancelled() }
                throw TestSupportError("The load failed.")
            }
        }
        // A load that fails ends its turn at once.
        await until { self.near.calls.hasPrefix("take a") }
        if end == "is cancelled" { load.cancel() }
        _ = await load.result
        await cache.waitForPendingStores()
        #expect(self.near.calls == (end == "is cancelled" ? "take a, cancel a" : "take a, end a"))
    }

    @Test func `a turn ends even if the family is suspect and cannot be repaired`() async throws {
        let cache = CacheActor(tiers: [self.near], timeBudget: .seconds(60))
        await cache.takingTurns {
            _ = try? await cache.entry(for: self.key)
            self.near.fails = true
            await cache.store(nil, data: makeData(10), metadata: .sample, for: self.key, in: .disk)
        }
        await cache.waitForPendingStores()
        #expect(self.near.calls == "take a, store a, end a")
    }

    @Test func `turns go on while a store in the background holds them`() async throws {
        let cache = CacheActor(tiers: [self.near], timeBudget: .seconds(60))
        let store: @Sendable (Data) async -> Void = { data in
            _ = try? await cache.storeAndWait(nil, data: data, metadata: .sample, for: self.key)
        }
        let work = try await cache.takingTurns {
            _ = try await cache.entry(for: self.key)
            return cache.holdingTurns(store)
        }
        #expect(self.near.calls == "take a")
        await work(makeData(10))
        await cache.waitForPendingStores()
        #expect(self.near.calls == "take a, store a, end a")
    }

    // MARK: No tier

    @Test(arguments: TierPolicies.Policy.allCases)
    func `a cache without byte tiers answers`(policy: TierPolicies.Policy) async throws {
        let policies = TierPolicies(query: policy, contains: policy, store: policy, remove: policy, clear: policy)
        let cache = CacheActor(tiers: [], policies: policies)
        #expect(try await cache.entry(for: self.key) == nil)
        #expect(await !cache.contains(self.key))
        try await self.store(10, in: cache)
        #expect(try await !cache.remove(self.key))
        #expect(try await !cache.removeFamily(of: self.key))
        try await cache.removeAll()
        await cache.waitForPendingStores()
        #expect(await cache.statistics().tiers.isEmpty)
    }
}
