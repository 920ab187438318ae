import FoundationEssentials
import TintypeConcurrency
import TintypeTestSupport

@testable import Tintype

/// A value that one task leaves for another.
final class Box<Value: Sendable>: Sendable {
    private let state: Locked<Value?>

    init(_ value: Value? = nil) {
        self.state = Locked(value)
    }

    var value: Value? {
        get { self.state.withLock { $0 } }
        set { self.state.withLock { $0 = newValue } }
    }
}

/// A fetcher made of closures.
struct ClosureFetcher: ImageFetching {
    let respond: @Sendable (DownloadRequest, FetchObserver) async throws -> DownloadResponse
    var hear: @Sendable () async -> Void = {}

    func response(
        for request: DownloadRequest,
        observer: FetchObserver
    ) async throws
        -> DownloadResponse
    {
        try await self.respond(request, observer)
    }

    func priorityDidChange(
        of request: DownloadRequest,
        to priority: @escaping @Sendable () -> DownloadPriority
    ) async {
        await self.hear()
    }
}

/// A cache that holds up stores of images in memory, after they are there, and does something else after stores of bytes.
final class HeldCache: ImageCache {
    let base: CacheActor
    let gate: Gate
    let storeCount = Box(0)
    private let willStore: @Sendable (CacheKey) async -> Void
    private let didStore: @Sendable (CacheKey, Data) async -> Void
    private let didFind: @Sendable (CachedFile) async -> Void

    init(
        _ base: CacheActor,
        gate: Gate,
        willStore: @escaping @Sendable (CacheKey) async -> Void = { _ in },
        didStore: @escaping @Sendable (CacheKey, Data) async -> Void = { _, _ in },
        didFind: @escaping @Sendable (CachedFile) async -> Void = { _ in }
    ) {
        self.base = base
        self.gate = gate
        self.willStore = willStore
        self.didStore = didStore
        self.didFind = didFind
    }

    func memoryImage(for key: CacheKey) -> Image? { self.base.memoryImage(for: key) }
    func memoryEntry(for key: CacheKey) -> MemoryEntry? { self.base.memoryEntry(for: key) }
    func peekMemoryEntry(for key: CacheKey) -> MemoryEntry? { self.base.peekMemoryEntry(for: key) }
    func lookUp(_ key: CacheKey, in tiers: CacheTiers) async throws -> CacheHit? {
        try await self.base.lookUp(key, in: tiers)
    }
    func readyEntry(for key: CacheKey) -> DiskEntry? { self.base.readyEntry(for: key) }
    func tiers(holding key: CacheKey, in tiers: CacheTiers) async -> CacheTiers {
        await self.base.tiers(holding: key, in: tiers)
    }
    func store(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers
    ) async -> InsertOutcome? {
        if data != nil { await self.willStore(key) }
        let outcome = self.base.store(image, data: data, metadata: metadata, for: key, in: tiers)
        if let data { await self.didStore(key, data) }
        if image != nil {
            self.storeCount.value = (self.storeCount.value ?? 0) + 1
            await self.gate.wait()
        }
        return outcome
    }
    func storeAndWait(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers
    ) async throws -> InsertOutcome? {
        if data != nil { await self.willStore(key) }
        let outcome = try await self.base.storeAndWait(image, data: data, metadata: metadata, for: key, in: tiers)
        if let data { await self.didStore(key, data) }
        return outcome
    }
    func remove(_ key: CacheKey, from tiers: CacheTiers) async throws -> Bool {
        try await self.base.remove(key, from: tiers)
    }
    func file(for key: CacheKey) async throws -> CachedFile? {
        let file = try await self.base.file(for: key)
        if let file { await self.didFind(file) }
        return file
    }
    func removeAll(from tiers: CacheTiers) async throws { try await self.base.removeAll(from: tiers) }
    func waitForPendingStores() async { await self.base.waitForPendingStores() }
    func statistics() async -> CacheStatistics { await self.base.statistics() }
}
