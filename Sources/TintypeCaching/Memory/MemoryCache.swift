import FoundationEssentials
import TintypeConcurrency
public import TintypeImage

/// The memory tier: decoded pictures, within a limit of bytes, found without suspending.
///
/// Every function may be called from any thread and takes a lock for well under a
/// microsecond. When the limit is passed the least recently used pictures go, at once.
public final class MemoryCache: Sendable {
    private let table: Locked<MemoryTable>
    private let now: @Sendable () -> Date

    /// Creates an empty cache.
    public init(_ configuration: Configuration = Configuration()) {
        self.table = Locked(MemoryTable(costLimit: configuration.costLimit, countLimit: configuration.countLimit))
        self.now = configuration.now
    }

    // MARK: Reading

    /// The picture under `key`, which counts as its use.
    ///
    /// Takes about as long as a look-up in a dictionary, and allocates nothing.
    public func image(for key: CacheKey) -> Image? {
        guard let item = self.table.withLock({ $0.useItem(key) }) else { return nil }
        // The clock is asked only for the few entries that have an expiry of their own.
        guard item.expiresAt < .infinity, self.isOver(item.expiresAt, for: key) else { return item.image }
        return nil
    }

    /// The picture under `key` with its metadata, which counts as its use.
    public func entry(for key: CacheKey) -> MemoryEntry? {
        guard let entry = self.table.withLock({ $0.useEntry(key) }) else { return nil }
        guard entry.item.expiresAt < .infinity, self.isOver(entry.item.expiresAt, for: key) else {
            return MemoryEntry(image: entry.item.image, metadata: entry.metadata)
        }
        return nil
    }

    /// Whether there is a picture under `key`.
    ///
    /// Is no use of it, and counts as no look-up.
    public func contains(_ key: CacheKey) -> Bool {
        let expiresAt = self.table.withLock { $0.expiry(of: key) }
        guard let expiresAt else { return false }
        return expiresAt == .infinity || expiresAt > self.now().timeIntervalSinceReferenceDate
    }

    // MARK: Writing

    /// Keeps `image` under `key`, in place of an older one.
    ///
    /// Drops the least recently used pictures until the limits hold again. A picture that
    /// alone is over the limit is refused, and an older one under the same key is dropped.
    @discardableResult
    public func insert(_ image: Image, metadata: EntryMetadata? = nil, for key: CacheKey) -> InsertOutcome {
        let item = MemoryTable.Item(
            image: image,
            cost: MemoryEntry.cost(of: image),
            expiresAt: metadata?.expiry?.timeIntervalSinceReferenceDate ?? .infinity
        )
        let entry = MemoryTable.Entry(item: item, metadata: metadata)
        // What left the table is released here, after the lock.
        let (outcome, _) = self.table.withLock { $0.insert(entry, for: key) }
        return outcome
    }

    /// Forgets the picture under `key`, and says whether there was one.
    @discardableResult
    public func remove(_ key: CacheKey) -> Bool {
        let removed = self.table.withLock { $0.remove(key) }
        return removed != nil
    }

    /// Forgets all pictures.
    public func removeAll() {
        _ = self.table.withLock { $0.removeAll() }
    }

    /// Drops the least recently used pictures until the rest costs at most `cost` bytes.
    ///
    /// The limits stay as they are.
    public func trim(toCost cost: Int) {
        _ = self.table.withLock { $0.trim(toCost: cost) }
    }

    // MARK: Limits and figures

    /// The bytes of pixels that the cache may hold; setting it drops at once what is over it.
    public var costLimit: Int {
        get { self.table.withLock { $0.costLimit } }
        set { _ = self.table.withLock { $0.setLimits(cost: newValue, count: $0.countLimit) } }
    }

    /// The entries that the cache may hold, or `nil` for any number; setting it drops at once
    /// what is over it.
    public var countLimit: Int? {
        get { self.table.withLock { $0.countLimit } }
        set { _ = self.table.withLock { $0.setLimits(cost: $0.costLimit, count: newValue) } }
    }

    /// What the cache holds and how it was used.
    public var statistics: MemoryStatistics {
        self.table.withLock { $0.statistics }
    }

    /// Whether an entry that was just found is over; then it is removed.
    private func isOver(_ expiresAt: Double, for key: CacheKey) -> Bool {
        let date = self.now().timeIntervalSinceReferenceDate
        guard expiresAt <= date else { return false }
        _ = self.table.withLock { $0.removeExpired(key, by: date) }
        return true
    }
}
