import CTintypeShims
public import FoundationEssentials
import Synchronization
import TintypeConcurrency
public import TintypeImage

/// The memory tier: decoded images, within a limit of bytes, found without suspending.
///
/// Every function may be called from any thread. A look-up takes a lock, which it hardly ever shares with another one,
/// for tens of nanoseconds, and does not allocate. When the cache exceeds the limit, it evicts images at once. The best
/// of several policies chooses them; at first that is the least recently used image.
///
/// The cache finds an evicted image again while it is held elsewhere, and takes it back. It never finds an expired
/// image, and removes it within ten seconds.
public final class MemoryCache: Sendable {
    private let table: StripedLock<MemoryTable, AccessBuffer>
    private let ledger: Locked<MemoryLedger>
    private let configuration: Configuration
    /// The encoded images, counted apart.
    private let encoded: EncodedMemory
    /// Waits until the next removal of expired entries.
    private let sleep: @Sendable (Duration) async throws -> Void
    /// Keeps threads with full buffers from waiting for each other.
    private let isTelling = Atomic(false)
    /// Removes expired entries while there are entries that will expire.
    private let sweeping = TaskOwner()
    private let pressure = Locked<MemoryPressureMonitor.Subscription?>(nil)

    /// Creates an empty cache.
    public convenience init(_ configuration: Configuration = Configuration()) {
        self.init(configuration, sleep: { try await Task.sleep(for: $0) })
    }

    init(_ configuration: Configuration, sleep: @escaping @Sendable (Duration) async throws -> Void) {
        let limits = MemoryLimits(cost: configuration.costLimit, count: configuration.countLimit)
        self.table = StripedLock(MemoryTable(), count: Self.stripeCount, note: AccessBuffer())
        self.ledger = Locked(MemoryLedger(limits: limits, keepsWeakly: configuration.keepsWeakly))
        self.configuration = configuration
        self.encoded = EncodedMemory(limit: configuration.encodedCostLimit, now: configuration.now)
        self.sleep = sleep
        if configuration.respondsToMemoryPressure { self.respond(to: .shared()) }
    }

    /// Twice the cores, so that two threads seldom meet; a writer takes all of them.
    private static let stripeCount: Int = {
        var count = 4
        while count < 2 * ProcessInfo.processInfo.activeProcessorCount, count < 32 { count *= 2 }
        return count
    }()

    // MARK: Reading

    /// Returns the image under `key`, and counts as a use.
    ///
    /// Takes about as long as a look-up in a dictionary, and does not allocate.
    public func image(for key: CacheKey) -> Image? {
        self.image(for: key, countsMiss: true)
    }

    /// Returns the image under `key`.
    ///
    /// A miss does not count, because another look-up follows.
    @inline(__always)
    func image(for key: CacheKey, countsMiss: Bool) -> Image? {
        let ticks = cshims_ticks()
        let found = self.table.read { table, buffer in
            table.lookUp(key, ticks: ticks, noting: &buffer, countsMiss: countsMiss) { $0.image(in: $1) }
        }
        return found.isSettled ? found.value : self.settle(found, key, countsMiss: countsMiss) { $0.image }
    }

    /// Returns the image under `key` with its metadata, and counts as a use.
    public func entry(for key: CacheKey) -> MemoryEntry? {
        let ticks = cshims_ticks()
        let found = self.table.read { table, buffer in
            table.lookUp(key, ticks: ticks, noting: &buffer) { $0.entry(in: $1) }
        }
        return found.isSettled ? found.value : self.settle(found, key) { $0 }
    }

    /// Returns the image under `key` with its metadata.
    ///
    /// Counts neither as a use nor as a look-up.
    ///
    /// Does not extend its lifetime. Finds an evicted image that is held elsewhere, but does not take it back.
    public func peek(_ key: CacheKey) -> MemoryEntry? {
        let found = self.table.read { table, _ in table.peek(key) }
        guard let found, found.life.isEndless || !found.life.isOver(at: self.time) else { return nil }
        return found.entry
    }

    /// Returns whether there is an image under `key`.
    ///
    /// Counts neither as a use nor as a look-up, and does not extend its lifetime.
    public func contains(_ key: CacheKey) -> Bool {
        self.peek(key) != nil
    }

    // MARK: Writing

    /// Stores `image` under `key`, and replaces an older one.
    ///
    /// Evicts other images until the limits hold. Refuses an image that alone exceeds the limit, and removes the older
    /// one under the same key.
    ///
    /// - Parameters:
    ///   - image: The image.
    ///   - metadata: The metadata, whose expiry ends the entry in any case.
    ///   - lifetime: The lifetime, instead of the configuration's.
    ///   - key: The key.
    /// - Returns: Whether it is in the cache, or why not.
    @discardableResult
    public func insert(
        _ image: Image,
        metadata: EntryMetadata? = nil,
        lifetime: Duration? = nil,
        for key: CacheKey
    ) -> InsertOutcome {
        self.insert(MemoryEntry(image: image, metadata: metadata), lifetime: lifetime, for: key)
    }

    /// Stores an image with its metadata under `key`, and replaces an older one.
    ///
    /// - Parameters:
    ///   - entry: The image; the expiry of its metadata ends the entry in any case.
    ///   - lifetime: The lifetime, instead of the configuration's.
    ///   - key: The key.
    /// - Returns: Whether it is in the cache, or why not.
    @discardableResult
    public func insert(_ entry: MemoryEntry, lifetime: Duration? = nil, for key: CacheKey) -> InsertOutcome {
        let life = self.makeLife(lifetime, expiry: entry.metadata?.expiry)
        // Release the removed images here, after the locks.
        let (outcome, _) = self.change { $0.insert(entry, life: life, for: key, in: &$1) }
        return outcome
    }

    /// Stores an image under `key`, unless it is obsolete at that moment; see ``ImageCache``.
    ///
    /// The cache calls `isObsolete` while it is locked: the function must be quick, and must not call the cache.
    func insert(
        _ image: Image,
        metadata: EntryMetadata?,
        for key: CacheKey,
        unless isObsolete: () -> Bool
    ) {
        let life = self.makeLife(nil, expiry: metadata?.expiry)
        let entry = MemoryEntry(image: image, metadata: metadata)
        // Release the removed images here, after the locks.
        _ = self.change { isObsolete() ? nil : $0.insert(entry, life: life, for: key, in: &$1) }
    }

    /// Forgets the image under `key`, even if it is held elsewhere, and returns whether there was one.
    @discardableResult
    public func remove(_ key: CacheKey) -> Bool {
        let removed = self.change { $0.remove(key, in: &$1) }
        return self.encoded.remove(key) || removed != nil
    }

    /// Forgets the images of the family of `key`, even if they are held elsewhere, and returns whether there were any.
    ///
    /// Examines every entry. Meanwhile stores and look-ups of encoded images wait.
    @discardableResult
    public func removeFamily(of key: CacheKey) -> Bool {
        let keys = self.table.read { table, _ in table.keys(inFamilyOf: key) }
        // Release the removed images here, after the locks.
        let removed = self.change { ledger, table in keys.compactMap { ledger.remove($0, in: &table) } }
        return self.encoded.removeFamily(of: key) || !removed.isEmpty
    }

    /// Forgets all images, even if they are held elsewhere.
    public func removeAll() {
        _ = self.change { $0.removeAll(in: &$1) }
        self.encoded.trim(toFraction: 0)
    }

    /// Evicts the least recently used images until the rest costs at most `cost` bytes.
    ///
    /// The limits do not change. The cache finds images again that are held elsewhere.
    public func trim(toCost cost: Int) {
        _ = self.change { $0.trim(toCost: cost, in: &$1) }
    }

    /// Evicts the least recently used images until the rest costs at most this fraction of the cost of all.
    ///
    /// 0 empties the cache. The cache finds images again that are held elsewhere.
    public func trim(toFraction fraction: Double) {
        let fraction = fraction > 0 ? min(fraction, 1) : 0
        _ = self.change { $0.trim(toCost: Int(Double($0.statistics.cost) * fraction), in: &$1) }
        self.encoded.trim(toFraction: fraction)
    }

    /// Releases memory when `monitor` reports pressure: half at "some", all at "full".
    ///
    /// The cache finds images again that are held elsewhere. A new monitor replaces the one before.
    package func respond(to monitor: MemoryPressureMonitor) {
        let subscription = monitor.subscribe { [weak self] pressure in
            self?.trim(toFraction: pressure == .full ? 0 : 0.5)
        }
        // The one before ends after the lock.
        _ = self.pressure.withLock { current in
            defer { current = subscription }
            return current
        }
    }

    // MARK: Encoded images

    /// Returns the encoded image for `key` and an encoding, and counts as a use.
    ///
    /// Takes about as long as the look-up of an image, and does not allocate.
    public func encodedEntry(for key: CacheKey, encoding: UInt64, countsMiss: Bool = true) -> EncodedEntry? {
        self.encoded.entry(for: key, encoding: encoding, countsMiss: countsMiss)
    }

    /// Stores an encoded image for `key`, unless it is obsolete at that moment; see ``ImageCache``.
    public func keepEncoded(
        _ entry: EncodedEntry,
        for key: CacheKey,
        encoding: UInt64,
        unless isObsolete: () -> Bool
    ) {
        let life = self.makeLife(nil, expiry: entry.metadata.expiry)
        self.encoded.insert(entry, life: life, for: key, encoding: encoding, unless: isObsolete)
    }

    /// Forgets the encoded images for `key`, in all encodings.
    func removeEncoded(of key: CacheKey) {
        self.encoded.removeAll(of: key)
    }

    // MARK: Limits and figures

    /// The most bytes of the cache.
    ///
    /// Setting it evicts entries at once.
    public var costLimit: Int {
        get { self.ledger.withLock { $0.limits.cost } }
        set { self.setLimits { MemoryLimits(cost: newValue, count: $0.count) } }
    }

    /// The most entries of the cache, or `nil` for any number.
    ///
    /// Setting it evicts entries at once.
    public var countLimit: Int? {
        get { self.ledger.withLock { $0.limits.count } }
        set { self.setLimits { MemoryLimits(cost: $0.cost, count: newValue) } }
    }

    /// Returns the statistics of the cache.
    public var statistics: MemoryStatistics {
        self.ledger.withLock { ledger in
            var statistics = ledger.statistics
            self.table.forEachNote {
                statistics.hits += $0.hits
                statistics.misses += $0.misses
            }
            statistics.weakCount = self.table.read { table, _ in table.weak.count }
            let encoded = self.encoded.figures
            statistics.encodedCount = encoded.count
            statistics.encodedCost = encoded.cost
            statistics.encodedHits = encoded.hits
            statistics.encodedMisses = encoded.misses
            return statistics
        }
    }

    // MARK: Parts

    private var time: Double { self.configuration.now().timeIntervalSinceReferenceDate }

    private func makeLife(_ lifetime: Duration?, expiry: Date?) -> EntryLife {
        // Its own expiry overrides the default.
        let lifetime = lifetime ?? (expiry == nil ? self.configuration.lifetime : nil)
        guard lifetime != nil || expiry != nil else { return .endless }
        return EntryLife(
            start: self.time,
            lifetime: lifetime.map { Double($0.components.seconds) + Double($0.components.attoseconds) / 1e18 },
            expiry: expiry?.timeIntervalSinceReferenceDate,
            isExtendedOnRead: self.configuration.extendsLifetimeOnRead
        )
    }

    /// Changes ledger and table together, after the policy has received all look-ups so far.
    private func change<Result: Sendable>(
        _ body: (inout MemoryLedger, inout MemoryTable) -> Result
    ) -> Result {
        let (result, isSweepDue) = self.ledger.withLock { ledger in
            self.tell(&ledger)
            let result = self.table.write { body(&ledger, &$0) }
            return (result, ledger.beginsSweeping())
        }
        if isSweepDue { self.beginSweeping() }
        return result
    }

    /// Starts the removal of expired entries, as long as there are entries that will expire.
    private func beginSweeping() {
        self.sweeping.run("memory cache expiry") { [weak self, sleep = self.sleep] in
            repeat {
                guard (try? await sleep(.seconds(10))) != nil else { return }
            } while self?.sweep() ?? false
        }
    }

    /// Removes expired entries, and returns whether more entries will expire.
    private func sweep() -> Bool {
        let time = self.time
        // In parts, so that look-ups do not wait for long.
        let slotCount = self.table.read { table, _ in table.slotCount }
        for start in stride(from: 0, to: slotCount, by: 4_096) {
            _ = self.change { $0.removeExpired(in: start..<start + 4_096, at: time, in: &$1) }
        }
        return self.ledger.withLock { $0.continuesSweeping() }
    }

    private func setLimits(_ limits: (MemoryLimits) -> MemoryLimits) {
        _ = self.change { $0.setLimits(limits($0.limits), in: &$1) }
    }

    private func tell(_ ledger: inout MemoryLedger) {
        ledger.note { accesses in self.table.forEachNote { $0.drain(into: &accesses) } }
    }

    /// Passes the look-ups so far to the policy, unless another thread does.
    private func tellUnlessTold() {
        guard !self.isTelling.exchange(true, ordering: .relaxed) else { return }
        self.ledger.withLock { self.tell(&$0) }
        self.isTelling.store(false, ordering: .relaxed)
    }

    /// Does the work that is left after a look-up.
    private func settle<Value>(
        _ found: MemoryLookUp<Value>,
        _ key: CacheKey,
        countsMiss: Bool = true,
        _ pick: (MemoryEntry) -> Value
    ) -> Value? {
        if found.isBufferDue { self.tellUnlessTold() }
        if found.mayBeAlive {
            let time = self.time
            let (revived, _) = self.change {
                $0.revive(key, at: time, countsMiss: countsMiss, in: &$1)
            }
            return revived.map(pick)
        }
        guard !found.life.isEndless else { return found.value }
        let time = self.time
        if found.life.isOver(at: time) {
            _ = self.change {
                $0.removeExpired(key, at: time, countsMiss: countsMiss, in: &$1)
            }
            return nil
        }
        if found.life.isExtendedOnRead { self.change { $0.extendLife(of: key, at: time, in: &$1) } }
        return found.value
    }

    /// The limits of a memory tier.
    public struct Configuration: Sendable {
        /// The most bytes of the cache, counted as ``MemoryEntry/cost`` and the bytes of very long keys; with 0 or less
        /// it stores nothing.
        ///
        /// By default 15 % of the memory that this process may use, and at most 768 MB.
        public var costLimit: Int
        /// The most images of the cache, or `nil` for any number.
        public var countLimit: Int?
        /// The most bytes of encoded images, in addition; with 0 or less it stores none.
        ///
        /// By default a quarter of the default of ``costLimit``.
        public var encodedCostLimit: Int
        /// The lifetime of entries without a lifetime or an expiry of their own; `nil`, the default, is no limit.
        public var lifetime: Duration?
        /// Whether a look-up restarts the lifetime of its entry; default `false`.
        ///
        /// ``MemoryCache/contains(_:)`` never does, and no look-up extends an expiry in the metadata.
        public var extendsLifetimeOnRead: Bool
        /// Whether the cache finds evicted images again while they are held elsewhere; default `true`.
        public var keepsWeakly: Bool
        /// Whether the cache releases memory when the machine or the cgroup is short of it; default `false`, and `true`
        /// for the cache of a loader.
        ///
        /// Starts the process' ``MemoryPressureMonitor``.
        public var respondsToMemoryPressure: Bool
        /// The clock for lifetimes.
        public var now: @Sendable () -> Date

        /// Creates limits.
        public init(
            costLimit: Int = Configuration.defaultCostLimit,
            countLimit: Int? = nil,
            encodedCostLimit: Int = Configuration.defaultCostLimit / 4,
            lifetime: Duration? = nil,
            extendsLifetimeOnRead: Bool = false,
            keepsWeakly: Bool = true,
            respondsToMemoryPressure: Bool = false,
            now: @escaping @Sendable () -> Date = { Date() }
        ) {
            self.costLimit = costLimit
            self.countLimit = countLimit
            self.encodedCostLimit = encodedCostLimit
            self.lifetime = lifetime
            self.extendsLifetimeOnRead = extendsLifetimeOnRead
            self.keepsWeakly = keepsWeakly
            self.respondsToMemoryPressure = respondsToMemoryPressure
            self.now = now
        }

        /// 15 % of the memory that this process may use (the limit of its cgroup if that is lower than the RAM), and at
        /// most 768 MB; computed once.
        public static let defaultCostLimit = min(MemoryBudget().byteCount / 100 * 15, 768_000_000)
    }
}

/// The statistics of a memory tier at one moment.
public struct MemoryStatistics: Sendable, Hashable {
    /// The entries in the cache.
    public var count = 0
    /// The cost of the entries in bytes.
    public var cost = 0
    /// The evicted entries that the cache finds again while their images are held elsewhere; some may be gone already.
    public var weakCount = 0
    /// The hits.
    public var hits = 0
    /// The misses.
    public var misses = 0
    /// The hits that found an evicted image that was held elsewhere.
    public var weakHits = 0
    /// The entries that were evicted because of the limits, or because memory was short.
    public var evictions = 0
    /// The entries that have expired.
    public var expirations = 0
    /// The images that were refused because they alone exceed a limit.
    public var refusals = 0
    /// The encoded images in the cache.
    public var encodedCount = 0
    /// The cost of the encoded images in bytes.
    public var encodedCost = 0
    /// The hits of encoded images.
    public var encodedHits = 0
    /// The misses of encoded images.
    public var encodedMisses = 0

    /// Creates statistics of an empty cache.
    public init() {}

    /// Returns the sum of the statistics of two caches.
    public static func + (left: MemoryStatistics, right: MemoryStatistics) -> MemoryStatistics {
        var sum = left
        sum.count += right.count
        sum.cost += right.cost
        sum.weakCount += right.weakCount
        sum.hits += right.hits
        sum.misses += right.misses
        sum.weakHits += right.weakHits
        sum.evictions += right.evictions
        sum.expirations += right.expirations
        sum.refusals += right.refusals
        sum.encodedCount += right.encodedCount
        sum.encodedCost += right.encodedCost
        sum.encodedHits += right.encodedHits
        sum.encodedMisses += right.encodedMisses
        return sum
    }
}
