// SPDX-License-Identifier: Apache-2.0

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

/// A disk tier that runs closures around the stores that a load waits for, and after it finds a file.
final class HeldTier: OrderedByteTier {
    let base: DiskCache
    let storeCount = DecodeCounter()
    private let willStore: @Sendable (CacheKey) async -> Void
    private let didStore: @Sendable (CacheKey, Data) async -> Void
    private let didFind: @Sendable (CachedFile) async -> Void

    init(
        _ base: DiskCache,
        willStore: @escaping @Sendable (CacheKey) async -> Void = { _ in },
        didFind: @escaping @Sendable (CachedFile) async -> Void = { _ in },
        didStore: @escaping @Sendable (CacheKey, Data) async -> Void = { _, _ in }
    ) {
        self.base = base
        self.willStore = willStore
        self.didStore = didStore
        self.didFind = didFind
    }

    convenience init(_ directory: URL, willStore: @escaping @Sendable (CacheKey) async -> Void) {
        self.init(DiskCache(.init(directory: directory)), willStore: willStore)
    }

    var name: String { self.base.name }
    var isLocal: Bool { true }

    func accepts(_ key: CacheKey, byteCount: Int) -> Bool { true }
    func entry(for key: CacheKey) async throws -> ByteEntry? { try await self.base.entry(for: key) }
    func metadata(for key: CacheKey) async throws -> EntryMetadata? { try await self.base.metadata(for: key) }
    func readyEntry(for key: CacheKey) -> ByteEntry? { self.base.readyEntry(for: key) }
    func readyMetadata(for key: CacheKey) -> EntryMetadata? { self.base.readyMetadata(for: key) }
    func contains(_ key: CacheKey) async -> Bool { await self.base.contains(key) }
    func file(for key: CacheKey) async throws -> CachedFile? {
        let file = try await self.base.file(for: key)
        if let file { await self.didFind(file) }
        return file
    }
    func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
        if key.isDerived { self.storeCount.increment() }
        await self.willStore(key)
        try await self.base.store(data, metadata: metadata, for: key)
        await self.didStore(key, data)
    }
    func enqueueStore(
        _ data: Data,
        metadata: EntryMetadata,
        for key: CacheKey,
        unless isObsolete: @Sendable () -> Bool
    ) -> Bool {
        self.base.enqueueStore(data, metadata: metadata, for: key, unless: isObsolete)
    }
    func remove(_ key: CacheKey) async throws -> Bool { try await self.base.remove(key) }
    func removeFamily(of key: CacheKey) async throws -> Bool { try await self.base.removeFamily(of: key) }
    func removeAll() async throws { try await self.base.removeAll() }
    func waitForPendingStores() async { await self.base.waitForPendingStores() }
    func tierStatistics() async -> TierStatistics { await self.base.tierStatistics() }
}

/// A byte tier in memory that stands for a service shared by several loaders.
final class MemoryTier: ByteTier {
    private let state = Locked<(entries: [CacheKey: Data], fails: Bool)>(([:], false))

    var name: String { "shared" }

    /// Whether all calls fail.
    var fails: Bool {
        get { self.state.withLock { $0.fails } }
        set { self.state.withLock { $0.fails = newValue } }
    }

    func entry(for key: CacheKey) async throws -> ByteEntry? {
        try self.use { $0[key].flatMap { ByteEntry(encoded: $0, for: key) } }
    }

    func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
        try self.use { $0[key] = ByteEntry(data: data, metadata: metadata).encoded(for: key) }
    }

    func remove(_ key: CacheKey) async throws -> Bool {
        try self.use { $0.removeValue(forKey: key) != nil }
    }

    private func use<Value>(_ body: (inout [CacheKey: Data]) -> Value) throws -> Value {
        try self.state.withLock { state in
            guard !state.fails else { throw TestSupportError("The service is down.") }
            return body(&state.entries)
        }
    }
}
