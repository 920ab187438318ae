// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeFlights
import TintypeTestSupport

@testable import Tintype

/// The changes that loads make to a byte tier, without a loader.
@Suite struct ByteStoreTests {
    private let tier = RecordingTier()
    private let request: ImageRequest
    private let body = Data("body".utf8)
    private let metadata = EntryMetadata(formatName: "png", mediaType: "image/x-png", byteCount: 4, bodyDigest: 2)
    private let older = ByteEntry(data: Data("older".utf8), metadata: EntryMetadata(bodyDigest: 1))
    private var key: CacheKey { self.request.sourceKey }

    init() throws {
        self.request = ImageRequest(url: try #require(URL(string: "https://example.com/a")), options: .waitForStore)
    }

    private func makeStore(_ change: (inout LoaderActor.Configuration) -> Void = { _ in }) -> ByteStore {
        var configuration = LoaderActor.Configuration()
        configuration.tiers = [self.tier]
        change(&configuration)
        let (cache, rules) = (CacheActor(tiers: configuration.tiers), FreshnessRules(configuration))
        let (sources, hooks) = (StoredSources(cache: cache, rules: rules), ProgramHooks(configuration))
        let activities = ActivityCenter(configuration.observers)
        return ByteStore(cache: cache, sources: sources, rules: rules, hooks: hooks, activities: activities)
    }

    private func keep(_ request: ImageRequest, in store: ByteStore) async -> LoadError? {
        await store.keepSerialized(self.body, self.metadata, for: request, Demand(request, store.rules))
    }

    typealias Described = (String, String?, String?)

    // Unchanged bytes, as in the last row, keep what the origin said about them.
    @Test(arguments: [("GIF89a", "gif", "image/gif"), ("x", nil, nil), ("", "png", "image/x-png")] as [Described])
    func `metadata are about the serialized bytes`(start: String, formatName: String?, mediaType: String?) async {
        let store = self.makeStore { $0.originalSerializer = { _, _ in nil } }
        var request = self.request
        // The serializer of the request comes before the loader's.
        request.caching.originalSerializer = Named("start") { body, _ in Data(start.utf8) + body }
        self.tier[self.key] = self.older
        #expect(await self.keep(request, in: store) == nil)
        let stored = Data(start.utf8) + self.body
        var expected = self.metadata
        // The digest stays the one of the origin's body, by which loads compare bodies.
        (expected.formatName, expected.mediaType, expected.byteCount) = (formatName, mediaType, stored.count)
        #expect(self.tier[self.key]?.data == stored)
        #expect(self.tier[self.key]?.metadata == expected)
        #expect(self.tier.changes == ["store \(self.key)"])
    }

    @Test(arguments: [(CachePolicy.neverRevalidate, false), (.reload, true)])
    func `a serializer that returns nothing leaves no bytes`(policy: CachePolicy, removesVariants: Bool) async {
        let store = self.makeStore { $0.originalSerializer = { _, _ in nil } }
        let variant = self.key.derived("variant")
        let request = ImageRequest(url: self.request.url, cachePolicy: policy)
        // Even the same body must go: the serializer wants none on disk.
        self.tier[self.key] = ByteEntry(data: self.body, metadata: self.metadata)
        self.tier[variant] = self.older
        #expect(await self.keep(request, in: store) == nil)
        let more = removesVariants ? ["removeFamily \(self.key)"] : []
        #expect(self.tier.changes == ["remove \(self.key)"] + more)
        #expect(self.tier[self.key] == nil)
        #expect((self.tier[variant] == nil) == removesVariants)
    }

    @Test(arguments: [false, true], [false, true])
    func `a serializer that throws fails the store, and older bodies are removed`(waits: Bool, isSame: Bool) async {
        let observer = StoreErrorObserver()
        let store = self.makeStore {
            $0.observers = [observer]
            $0.originalSerializer = { _, _ in throw TestSupportError("The key is gone.") }
        }
        let request = ImageRequest(url: self.request.url, options: waits ? .waitForStore : [])
        self.tier[self.key] = isSame ? ByteEntry(data: self.body, metadata: self.metadata) : self.older
        let error = await self.keep(request, in: store)
        #expect(error?.code == .cacheFailed && error?.message == "The key is gone.")
        #expect(observer.errors.map(\.code) == [.cacheFailed])
        #expect(self.tier.changes == (isSame ? [] : ["remove \(self.key)"]))
    }

    @Test func `a load that stores no bytes calls no serializer, and removes older bodies`() async {
        let store = self.makeStore { $0.originalSerializer = { _, _ in throw TestSupportError("It was called.") } }
        let request = ImageRequest(source: self.request.source, caching: .init(originals: .memory))
        self.tier[self.key] = self.older
        #expect(await self.keep(request, in: store) == nil)
        #expect(self.tier.changes == ["remove \(self.key)"])
    }

    @Test(arguments: [(.diskFull, .diskFull), (.tierFailed, .cacheFailed)] as [(CacheError.Code, LoadError.Code)])
    func `a load that waits for its store receives the error of the tier`(
        code: CacheError.Code,
        expected: LoadError.Code
    ) async {
        self.tier[self.key] = self.older
        self.tier.fail("store", code)
        let error = await self.keep(self.request, in: self.makeStore())
        #expect(error?.code == expected && error?.message == "It failed.")
        // A later load must not find the older body.
        #expect(self.tier.changes == ["store \(self.key)", "remove \(self.key)"])
        #expect(self.tier[self.key] == nil)
    }

    @Test(arguments: [false, true]) func `a load that does not wait for its store receives no error`(fails: Bool) async
    {
        if fails { self.tier.fail("enqueue") }
        #expect(await self.keep(ImageRequest(url: self.request.url), in: self.makeStore()) == nil)
        #expect(self.tier.changes == ["enqueue \(self.key)"])
        #expect((self.tier[self.key] == nil) == fails)
    }

    @Test(
        arguments: [
            (.all, true, true, false, "may not be stored"), (.memory, true, true, true, nil),
            // A removal after the store is no failure of it.
            (.all, true, false, true, nil), (.memory, true, false, true, "is not on disk"),
            (.all, false, false, true, "is not on disk"),
        ] as [(CacheUse, Bool, Bool, Bool, String?)]
    )
    func `the check of a store throws if the bytes cannot be on disk`(
        use: CacheUse,
        hasTier: Bool,
        isThere: Bool,
        isAllowed: Bool,
        reason: String?
    ) async {
        let request = ImageRequest(source: self.request.source, caching: .init(originals: use))
        if isThere { self.tier[self.key] = self.older }
        let store = self.makeStore { if !hasTier { $0.tiers = [] } }
        do {
            try await store.checkStored(self.metadata, mayBeKept: isAllowed, of: request)
            #expect(reason == nil)
        } catch {
            #expect("\(error)".hasPrefix("cacheFailed: ") && "\(error)".contains(reason ?? "no reason"))
        }
    }

    @Test(
        arguments: [
            (.all, .neverRevalidate, true), (CacheUse(query: .disk, store: .none), .neverRevalidate, true),
            (.memory, .neverRevalidate, false), (.memory, .reload, true),
        ] as [(CacheUse, CachePolicy, Bool)]
    )
    func `requests that leave the disk alone remove nothing`(use: CacheUse, policy: CachePolicy, removes: Bool) async {
        let request = ImageRequest(source: self.request.source, caching: .init(originals: use, policy: policy))
        let other = CacheKey("https://example.com/b")
        for key in [self.key, other] { self.tier[key] = self.older }
        await self.makeStore().remove(request)
        #expect((self.tier[self.key] == nil) == removes)
        #expect(self.tier[other] != nil)
    }

    @Test(arguments: [false, true]) func `a shared tier keeps images of the newest body`(isShared: Bool) async throws {
        let tier = RecordingTier(isLocal: !isShared)
        let store = self.makeStore { $0.tiers = [tier] }
        let keys = ["new", "old", "older"].map { CacheKey($0) }
        for key in keys {
            tier[key] = key == keys[0] ? ByteEntry(data: self.body, metadata: self.metadata) : self.older
            store.cache.memory.insert(try makeGray(1), for: key)
        }
        let flight = FlightState(id: 1, demand: Demand(), hasTurn: true, newestBody: self.metadata.bodyDigest)
        await store.removeImages([keys[0]: .all, keys[1]: .disk, keys[2]: .memory], in: flight)
        let (changes, isInMemory) = (tier.changes.sorted(), keys.map { store.cache.memory.contains($0) })
        #expect(changes == (isShared ? ["remove old"] : ["remove new", "remove old"]))
        #expect(isInMemory == [false, true, false])
    }
}

/// A byte tier in memory that records its changes and fails on demand, to which the cache adds no time budget.
private final class RecordingTier: OrderedByteTier {
    let isLocal: Bool
    private let entries = Locked<[CacheKey: ByteEntry]>([:])
    private let notes = Locked<[String]>([])
    private let errors = Locked<[String: CacheError]>([:])

    var changes: [String] { self.notes.withLock { $0 } }

    init(isLocal: Bool = true) { self.isLocal = isLocal }

    subscript(key: CacheKey) -> ByteEntry? {
        get { self.entries.withLock { $0[key] } }
        set { self.entries.withLock { $0[key] = newValue } }
    }

    func fail(_ change: String, _ code: CacheError.Code = .tierFailed) {
        self.errors.withLock { $0[change] = CacheError(code: code, message: "It failed.") }
    }

    private func note(_ change: String, _ key: CacheKey) throws {
        self.notes.withLock { $0.append("\(change) \(key)") }
        if let error = self.errors.withLock({ $0[change] }) { throw error }
    }

    func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
        try self.note("store", key)
        self[key] = ByteEntry(data: data, metadata: metadata)
    }

    func enqueueStore(_ new: Data, metadata: EntryMetadata, for key: CacheKey, unless _: @Sendable () -> Bool) -> Bool {
        guard (try? self.note("enqueue", key)) != nil else { return false }
        self[key] = ByteEntry(data: new, metadata: metadata)
        return true
    }

    func remove(_ key: CacheKey) async throws -> Bool {
        try self.note("remove", key)
        return self.entries.withLock { $0.removeValue(forKey: key) != nil }
    }

    func removeFamily(of key: CacheKey) async throws -> Bool {
        try self.note("removeFamily", key)
        self.entries.withLock { entries in entries = entries.filter { !$0.key.isOfFamily(of: key) } }
        return true
    }

    func entry(for key: CacheKey) async throws -> ByteEntry? { self[key] }
    func contains(_ key: CacheKey) async -> Bool { self[key] != nil }
    func readyEntry(for key: CacheKey) -> ByteEntry? { nil }
    func readyMetadata(for key: CacheKey) -> EntryMetadata? { nil }
    func file(for key: CacheKey) async throws -> CachedFile? { nil }
    func waitForPendingStores() async {}
    func tierStatistics() async -> TierStatistics { TierStatistics(name: self.name) }
}
