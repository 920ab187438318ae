// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A tier of a cache: encoded bytes with their metadata, by key.
///
/// ``DiskCache`` is one. Conform to this protocol to add a tier of another kind, such as a store that several machines
/// share. Only ``entry(for:)``, ``store(_:metadata:for:)`` and ``remove(_:)`` have no default:
///
/// ```swift
/// struct ArchiveTier: ByteTier {
///     let archive: any Archive
///
///     func entry(for key: CacheKey) async throws -> ByteEntry? {
///         try await archive.item(named: key.digest).flatMap { ByteEntry(encoded: $0, for: key) }
///     }
///
///     func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
///         let entry = ByteEntry(data: data, metadata: metadata)
///         try await archive.put(entry.encoded(for: key), named: key.digest)
///     }
///
///     func remove(_ key: CacheKey) async throws -> Bool {
///         try await archive.delete(key.digest)
///     }
/// }
/// ```
///
/// The cache that has the tier limits the time of each call, and cancels the call at the end of that time. The call must end
/// soon after that, because later changes and the loader's shutdown wait for it. An error is a miss, and is counted. The cache runs the changes to one family of keys (``CacheKey/derived(_:)``) in the order of
/// their calls. After a change that failed, it finds no entry of that family in the tier until the family was removed.
///
/// To change one function of another tier, conform to ``ByteTierWrapper``, which forwards all others.
public protocol ByteTier: Sendable {
    /// The name in statistics and activities, such as `redis`; by default the name of the type.
    var name: String { get }

    /// The longest time of a call; `nil`, the default, is the time budget of the cache.
    var timeBudget: Duration? { get }

    /// Returns whether the tier stores an entry of this size.
    ///
    /// A tier that refuses 0 bytes has no entry of the key, so the cache neither asks it nor removes anything there. By
    /// default a tier refuses derived entries, such as thumbnails and responses that have `Vary`, and accepts all others.
    /// A tier that accepts derived entries must implement ``removeFamily(of:)``.
    func accepts(_ key: CacheKey, byteCount: Int) -> Bool

    /// Returns the entry of `key`, or `nil` if there is none.
    ///
    /// A load that finds no entry makes and stores one. A tier that several machines share may wait here while another
    /// machine makes the entry. During a load, ``TierTurn/current`` is the turn of that load for `key`. If the function then
    /// returns `nil` or throws, the cache calls ``endTurn(_:for:isCancelled:)`` after the load ends, whether or not the load
    /// stored an entry. It always does so for a ``ByteTierWrapper``.
    func entry(for key: CacheKey) async throws -> ByteEntry?

    /// Ends the turn of a load that found no entry of `key`; by default does nothing.
    ///
    /// The stores that the load began have ended before. If the load was cancelled, another machine may take its turn. If not,
    /// a load that has stored nothing has failed, or may not store its result.
    func endTurn(_ turn: TierTurn, for key: CacheKey, isCancelled: Bool) async

    /// Returns the metadata of the entry of `key`, or `nil` if there is none; by default from the whole entry.
    func metadata(for key: CacheKey) async throws -> EntryMetadata?

    /// Stores `data` for `key`, and replaces an older entry.
    func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws

    /// Removes the entry of `key`, and returns whether there was one.
    func remove(_ key: CacheKey) async throws -> Bool

    /// Removes all entries of the family of `key` (``CacheKey/derived(_:)``), and returns whether there were any.
    ///
    /// By default it removes only the entry of `key`. This suffices for a tier that accepts no derived entries.
    func removeFamily(of key: CacheKey) async throws -> Bool

    /// Removes all entries; by default throws an error, because a shared store may have other users.
    ///
    /// The time budget does not apply to it.
    func removeAll() async throws
}

extension ByteTier {
    public var name: String { "\(Self.self)" }

    public var timeBudget: Duration? { nil }

    public func accepts(_ key: CacheKey, byteCount: Int) -> Bool { !key.isDerived }

    public func endTurn(_ turn: TierTurn, for key: CacheKey, isCancelled: Bool) async {}

    public func metadata(for key: CacheKey) async throws -> EntryMetadata? {
        try await self.entry(for: key)?.metadata
    }

    public func removeFamily(of key: CacheKey) async throws -> Bool { try await self.remove(key) }

    public func removeAll() async throws {
        throw CacheError(
            code: .tierFailed,
            message: "The cache tier \(self.name) cannot remove all entries; implement removeAll() or leave it out."
        )
    }
}

/// A byte tier that changes some functions of another one.
///
/// Every requirement of ``ByteTier`` that the type does not implement calls ``base``. A wrapped ``DiskCache`` is a tier like
/// others: it has no files and no ready entries for the cache, and the time budget applies to it.
///
/// ```swift
/// struct SmallOnly: ByteTierWrapper {
///     let base: any ByteTier
///
///     func accepts(_ key: CacheKey, byteCount: Int) -> Bool {
///         byteCount < 1 << 20 && base.accepts(key, byteCount: byteCount)
///     }
/// }
/// ```
public protocol ByteTierWrapper: ByteTier {
    /// The other tier.
    var base: any ByteTier { get }
}

extension ByteTierWrapper {
    public var name: String { self.base.name }

    public var timeBudget: Duration? { self.base.timeBudget }

    public func accepts(_ key: CacheKey, byteCount: Int) -> Bool { self.base.accepts(key, byteCount: byteCount) }

    public func entry(for key: CacheKey) async throws -> ByteEntry? { try await self.base.entry(for: key) }

    public func endTurn(_ turn: TierTurn, for key: CacheKey, isCancelled: Bool) async {
        await self.base.endTurn(turn, for: key, isCancelled: isCancelled)
    }

    public func metadata(for key: CacheKey) async throws -> EntryMetadata? { try await self.base.metadata(for: key) }

    public func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
        try await self.base.store(data, metadata: metadata, for: key)
    }

    public func remove(_ key: CacheKey) async throws -> Bool { try await self.base.remove(key) }

    public func removeFamily(of key: CacheKey) async throws -> Bool { try await self.base.removeFamily(of: key) }

    public func removeAll() async throws { try await self.base.removeAll() }
}

/// A byte tier that keeps the order of its operations on one family, and that stores in the background.
///
/// ``DiskCache`` does so by itself. ``OrderedTier`` does it for other tiers.
package protocol OrderedByteTier: ByteTier {
    /// Whether all entries come from the disks of this machine.
    var isLocal: Bool { get }

    /// Returns the entry of `key`, checked, if it is small and ready without waiting, and counts as a use.
    ///
    /// `nil` does not mean that there is no entry, and does not count as a miss. It must not wait.
    func readyEntry(for key: CacheKey) -> ByteEntry?

    /// Returns the metadata of the entry of `key`, checked, if it is ready without waiting.
    ///
    /// It does not count as a use. `nil` does not mean that there is no entry. It must not wait.
    func readyMetadata(for key: CacheKey) -> EntryMetadata?

    /// Opens and checks the file of the entry of `key`, and counts as a use.
    func file(for key: CacheKey) async throws -> CachedFile?

    /// Returns whether there is an entry of `key`; does not count as a use.
    func contains(_ key: CacheKey) async -> Bool

    /// Stores `data` for `key` in the background, unless it is obsolete at the moment when the store gets its place in
    /// the order; returns whether it got one.
    @discardableResult
    func enqueueStore(
        _ data: Data,
        metadata: EntryMetadata,
        for key: CacheKey,
        unless isObsolete: @Sendable () -> Bool
    ) -> Bool

    /// Returns when all background stores that began before the call have ended.
    func waitForPendingStores() async

    /// Returns the failed stores of the tier, and the statistics of its folder.
    func tierStatistics() async -> TierStatistics
}
