import FoundationEssentials
import TintypeConcurrency
import TintypeImage

@testable import TintypeCaching

/// A memory cache that records the look-ups that reach it, and fails on demand.
final class RecordingCache: ImageCache {
    private struct State {
        var calls: [String] = []
        var fails = false
        var diskEntry: DiskEntry?
        var isForgetful = false
    }

    let inner = CacheActor(disk: nil)
    private let state = Locked(State())

    /// The look-ups so far, in one line.
    var calls: String { self.state.withLock { $0.calls.joined(separator: " ") } }

    /// Whether every throwing method throws.
    var fails: Bool {
        get { self.state.withLock { $0.fails } }
        set { self.state.withLock { $0.fails = newValue } }
    }

    /// The ready disk entry for every key.
    var diskEntry: DiskEntry? {
        get { self.state.withLock { $0.diskEntry } }
        set { self.state.withLock { $0.diskEntry = newValue } }
    }

    /// Whether the cache loses an entry as soon as it has returned it, as if it had been removed at that moment.
    var isForgetful: Bool {
        get { self.state.withLock { $0.isForgetful } }
        set { self.state.withLock { $0.isForgetful = newValue } }
    }

    func readyEntry(for key: CacheKey) -> DiskEntry? {
        self.state.withLock { state in
            defer { if state.isForgetful { state.diskEntry = nil } }
            return state.diskEntry
        }
    }

    func readyMetadata(for key: CacheKey) -> EntryMetadata? { self.readyEntry(for: key)?.metadata }

    func memoryImage(for key: CacheKey) -> Image? {
        defer { if self.isForgetful { self.inner.memory.remove(key) } }
        return self.inner.memoryImage(for: key)
    }

    func memoryEntry(for key: CacheKey) -> MemoryEntry? {
        defer { if self.isForgetful { self.inner.memory.remove(key) } }
        return self.inner.memoryEntry(for: key)
    }

    func lookUp(_ key: CacheKey, in tiers: CacheTiers) async throws -> CacheHit? {
        self.state.withLock { $0.calls.append("look") }
        if tiers.contains(.disk), let entry = self.diskEntry { return .disk(entry) }
        return try await self.inner.lookUp(key, in: tiers)
    }

    func tiers(holding key: CacheKey, in tiers: CacheTiers) async -> CacheTiers {
        await self.inner.tiers(holding: key, in: tiers)
    }

    func store(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers
    ) async -> InsertOutcome? {
        self.inner.store(image, data: data, metadata: metadata, for: key, in: tiers)
    }

    func storeAndWait(
        _ image: Image?,
        data: Data?,
        metadata: EntryMetadata,
        for key: CacheKey,
        in tiers: CacheTiers
    ) async throws -> InsertOutcome? {
        try self.failOnDemand()
        return try await self.inner.storeAndWait(image, data: data, metadata: metadata, for: key, in: tiers)
    }

    func remove(_ key: CacheKey, from tiers: CacheTiers) async throws -> Bool {
        try self.failOnDemand()
        return try await self.inner.remove(key, from: tiers)
    }

    func removeAll(from tiers: CacheTiers) async throws {
        try self.failOnDemand()
        try await self.inner.removeAll(from: tiers)
    }

    func waitForPendingStores() async { await self.inner.waitForPendingStores() }

    func statistics() async -> CacheStatistics { await self.inner.statistics() }

    private func failOnDemand() throws(CacheError) {
        if self.fails { throw CacheError(code: .diskFault, message: "The disk was told to fail.") }
    }
}
