// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
public import FoundationEssentials
import Synchronization
import TintypeConcurrency
public import TintypeImage

/// The memory tier: decoded images within a limit of bytes.
///
/// Every function may be called from any thread and does not suspend. A look-up does not allocate. It holds a lock for
/// tens of nanoseconds, and hardly ever shares that lock with another look-up. If the cache exceeds the limit, it
/// evicts images at once. The best of several policies chooses them; the first policy is LRU.
///
/// While an evicted image is in use elsewhere, a look-up still finds it and returns it to the cache. A look-up never
/// finds an expired image, and the cache removes it within ten seconds.
public final class MemoryCache: Sendable {
    private let table: StripedLock<MemoryTable, AccessBuffer>
    private let ledger: Locked<MemoryLedger>
    private let configuration: Configuration
    /// The encoded images, which have their own limit.
    private let encoded: EncodedMemory
    /// Waits for the time until the next removal of expired entries.
    private let sleep: @Sendable (Duration) async throws -> Void
    /// Whether a thread is passing look-ups to the policy, so that other threads with full buffers do not wait for it.
    private let isTelling = Atomic(false)
    /// The task that removes expired entries while there are entries that will expire.
    private let sweeping = TaskOwner()
    private let pressure = Locked<MemoryPressureMonitor.Subscription?>(nil)

    /// Creates an empty cache.
    ///
    /// ```swift
    /// let memory = MemoryCache(.init(costLimit: 256 << 20))
    /// ```
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

    /// Twice the number of cores, so that two threads seldom use the same stripe.
    ///
    /// A writer locks all stripes, so there are at most 32.
    private static let stripeCount: Int = {
        var count = 4
        while count < 2 * ProcessInfo.processInfo.activeProcessorCount, count < 32 { count *= 2 }
        return count
    }()

    // MARK: Reading

    /// Returns the image for `key`, and counts the access as a use.
    ///
    /// Takes about as long as a look-up in a dictionary, and does not allocate.
    ///
    /// ```swift
    /// let image = memory.image(for: key)  // nil if it is not in memory
    /// ```
    public func image(for key: CacheKey) -> Image? {
        self.image(for: key, countsMiss: true)
    }

    /// Returns the image for `key`, and counts the access as a use.
    ///
    /// A caller that makes another look-up after a miss does not count the first one (`countsMiss`).
    @inline(__always)
    package func image(for key: CacheKey, countsMiss: Bool) -> Image? {
        let ticks = cshims_ticks()
        let found = self.table.read { table, buffer in
            table.lookUp(key, ticks: ticks, noting: &buffer, countsMiss: countsMiss) { $0.image(in: $1) }
        }
        return found.isSettled ? found.value : self.settle(found, key, countsMiss: countsMiss) { $0.image }
    }

    /// Returns the image for `key` with its metadata, and counts the access as a use.
    ///
    /// ```swift
    /// if let entry = memory.entry(for: key) { print(entry.image.width, entry.metadata?.formatName ?? "") }
    /// ```
    public func entry(for key: CacheKey) -> MemoryEntry? {
        let ticks = cshims_ticks()
        let found = self.table.read { table, buffer in
            table.lookUp(key, ticks: ticks, noting: &buffer) { $0.entry(in: $1) }
        }
        return found.isSettled ? found.value : self.settle(found, key) { $0 }
    }

    /// Returns the image for `key` with its metadata.
    ///
    /// Counts neither as a use nor as a look-up, and does not extend the lifetime. It also returns an evicted image
    /// that is in use elsewhere, but does not store it again.
    ///
    /// ```swift
    /// let width = memory.peek(key)?.image.width
    /// ```
    public func peek(_ key: CacheKey) -> MemoryEntry? {
        let found = self.table.read { table, _ in table.peek(key) }
        guard let found, found.life.isEndless || !found.life.isOver(at: self.time) else { return nil }
        return found.entry
    }

    /// Returns whether there is an image for `key`.
    ///
    /// Counts neither as a use nor as a look-up, and does not extend its lifetime.
    ///
    /// ```swift
    /// let isInMemory = memory.contains(key)
    /// ```
    public func contains(_ key: CacheKey) -> Bool {
        self.peek(key) != nil
    }

    // MARK: Writing

    /// Stores `image` for `key`, and replaces an older one.
    ///
    /// Evicts other images until the limits hold. Refuses an image that alone exceeds the limit, and removes the older
    /// image for the same key.
    ///
    /// ```swift
    /// let outcome = memory.insert(image, lifetime: .seconds(600), for: CacheKey("https://example.com/photo.jpg"))
    /// if case .refused(let reason) = outcome { print(reason) }
    /// ```
    ///
    /// - Parameters:
    ///   - image: The image.
    ///   - metadata: The metadata, whose expiry limits any lifetime.
    ///   - lifetime: The lifetime, instead of the configuration's.
    ///   - key: The key.
    /// - Returns: Whether the image is in the cache, or the reason for the refusal.
    @discardableResult
    public func insert(
        _ image: Image,
        metadata: EntryMetadata? = nil,
        lifetime: Duration? = nil,
        for key: CacheKey
    ) -> InsertOutcome {
        self.insert(MemoryEntry(image: image, metadata: metadata), lifetime: lifetime, for: key)
    }

    /// Stores an image with its metadata for `key`, and replaces an older one.
    ///
    /// ```swift
    /// memory.insert(MemoryEntry(image: image, metadata: metadata), for: key)
    /// ```
    ///
    /// - Parameters:
    ///   - entry: The image; the expiry of its metadata limits any lifetime.
    ///   - lifetime: The lifetime, instead of the configuration's.
    ///   - key: The key.
    /// - Returns: Whether the image is in the cache, or the reason for the refusal.
    @discardableResult
    public func insert(_ entry: MemoryEntry, lifetime: Duration? = nil, for key: CacheKey) -> InsertOutcome {
        let life = self.makeLife(lifetime, expiry: entry.metadata?.expiry)
        // Release the removed images here, after the locks.
        let (outcome, _) = self.change { $0.insert(entry, life: life, for: key, in: &$1) }
        return outcome
    }

    /// Stores an image for `key`, unless it is obsolete at that moment.
    ///
    /// If `isObsolete` becomes true and the entry is removed afterwards, no later look-up finds it. `isObsolete` must not
    /// wait, may be called while the cache is locked, and must not call the cache.
    package func insert(
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

    /// Removes the image for `key`, even if it is in use elsewhere, and returns whether there was one.
    ///
    /// ```swift
    /// let wasThere = memory.remove(key)
    /// ```
    @discardableResult
    public func remove(_ key: CacheKey) -> Bool {
        let removed = self.change { $0.remove(key, in: &$1) }
        return self.encoded.remove(key) || removed != nil
    }

    /// Removes the images of the family of `key`, even if they are in use elsewhere, and returns whether there were
    /// any.
    ///
    /// Examines every entry. Meanwhile stores and look-ups of encoded images wait.
    ///
    /// ```swift
    /// let wereThere = memory.removeFamily(of: key)
    /// ```
    @discardableResult
    public func removeFamily(of key: CacheKey) -> Bool {
        let keys = self.table.read { table, _ in table.keys(inFamilyOf: key) }
        // Release the removed images here, after the locks.
        let removed = self.change { ledger, table in keys.compactMap { ledger.remove($0, in: &table) } }
        return self.encoded.removeFamily(of: key) || !removed.isEmpty
    }

    /// Removes all images, even if they are in use elsewhere.
    ///
    /// ```swift
    /// memory.removeAll()
    /// print(memory.statistics.count)  // 0
    /// ```
    public func removeAll() {
        _ = self.change { $0.removeAll(in: &$1) }
        self.encoded.trim(toFraction: 0)
    }

    /// Evicts the least recently used images until the rest costs at most `cost` bytes.
    ///
    /// The limits do not change. Look-ups still find images that are in use elsewhere.
    ///
    /// ```swift
    /// memory.trim(toCost: 64 << 20)
    /// ```
    public func trim(toCost cost: Int) {
        _ = self.change { $0.trim(toCost: cost, in: &$1) }
    }

    /// Evicts the least recently used images until the rest costs at most this fraction of the current cost.
    ///
    /// 0 empties the cache. Look-ups still find images that are in use elsewhere.
    ///
    /// ```swift
    /// memory.trim(toFraction: 0.5)
    /// ```
    public func trim(toFraction fraction: Double) {
        let fraction = fraction > 0 ? min(fraction, 1) : 0
        _ = self.change { $0.trim(toCost: Int(Double($0.statistics.cost) * fraction), in: &$1) }
        self.encoded.trim(toFraction: fraction)
    }

    /// Releases memory when `monitor` reports pressure: half at `some`, all at `full`.
    ///
    /// Look-ups still find images that are in use elsewhere. A new monitor replaces the previous one.
    package func respond(to monitor: MemoryPressureMonitor) {
        let subscription = monitor.subscribe { [weak self] pressure in
            self?.trim(toFraction: pressure == .full ? 0 : 0.5)
        }
        // Release the previous subscription after the lock.
        _ = self.pressure.withLock { current in
            defer { current = subscription }
            return current
        }
    }

    // MARK: Encoded images

    /// Returns the encoded image for `key` and an encoding, and counts the access as a use.
    ///
    /// Takes about as long as the look-up of an image, and does not allocate.
    package func encodedEntry(for key: CacheKey, encoding: UInt64, countsMiss: Bool = true) -> EncodedEntry? {
        self.encoded.entry(for: key, encoding: encoding, countsMiss: countsMiss)
    }

    /// Stores an encoded image for `key`, unless it is obsolete at that moment.
    ///
    /// If `isObsolete` becomes true and the entry is removed afterwards, no later look-up finds it. `isObsolete` must not
    /// wait, may be called while the cache is locked, and must not call the cache.
    package func keepEncoded(
        _ entry: EncodedEntry,
        for key: CacheKey,
        encoding: UInt64,
        unless isObsolete: () -> Bool
    ) {
        let life = self.makeLife(nil, expiry: entry.metadata.expiry)
        self.encoded.insert(entry, life: life, for: key, encoding: encoding, unless: isObsolete)
    }

    /// Removes the encoded images for `key`, in all encodings.
    func removeEncoded(of key: CacheKey) {
        self.encoded.removeAll(of: key)
    }

    // MARK: Limits and figures

    /// The maximum cost of the cache in bytes.
    ///
    /// Setting it evicts entries at once.
    public var costLimit: Int {
        get { self.ledger.withLock { $0.limits.cost } }
        set { self.setLimits { MemoryLimits(cost: newValue, count: $0.count) } }
    }

    /// The maximum number of entries, or `nil` for no limit.
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
        // An expiry overrides the default lifetime.
        let lifetime = lifetime ?? (expiry == nil ? self.configuration.lifetime : nil)
        guard lifetime != nil || expiry != nil else { return .endless }
        return EntryLife(
            start: self.time,
            lifetime: lifetime.map { Double($0.components.seconds) + Double($0.components.attoseconds) / 1e18 },
            expiry: expiry?.timeIntervalSinceReferenceDate,
            isExtendedOnRead: self.configuration.extendsLifetimeOnRead
        )
    }

    /// Changes the ledger and the table together, after passing all look-ups so far to the policy.
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

    /// Starts to remove expired entries periodically, until no entry will expire.
    private func beginSweeping() {
        self.sweeping.run("memory cache expiry") { [weak self, sleep = self.sleep] in
            repeat {
                guard (try? await sleep(.seconds(10))) != nil else { return }
            } while self?.sweep() ?? false
        }
    }

    /// Removes expired entries, and returns whether others will expire later.
    private func sweep() -> Bool {
        let time = self.time
        // Work in parts, so that look-ups do not wait for long.
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

    /// Passes the look-ups so far to the policy, unless another thread is doing so.
    private func tellUnlessTold() {
        guard !self.isTelling.exchange(true, ordering: .relaxed) else { return }
        self.ledger.withLock { self.tell(&$0) }
        self.isTelling.store(false, ordering: .relaxed)
    }

    /// Completes a look-up that needs more work than reading the table.
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

    /// The configuration of a memory tier.
    public struct Configuration: Sendable {
        /// The maximum cost of the cache in bytes; a cache with a limit of 0 or less stores nothing.
        ///
        /// An entry costs its ``MemoryEntry/cost`` and the bytes of a very long key. By default 15 % of the memory that
        /// this process may use, and at most 768 MB.
        public var costLimit: Int
        /// The maximum number of images, or `nil` for no limit.
        public var countLimit: Int?
        /// The maximum cost of encoded images in bytes, in addition to ``costLimit``; 0 or less turns them off.
        ///
        /// By default a quarter of the default of ``costLimit``.
        public var encodedCostLimit: Int
        /// The lifetime of entries without a lifetime or an expiry of their own; by default `nil`, which is no limit.
        public var lifetime: Duration?
        /// Whether a look-up restarts the lifetime of its entry; by default `false`.
        ///
        /// ``MemoryCache/contains(_:)`` never does, and no look-up extends an expiry in the metadata.
        public var extendsLifetimeOnRead: Bool
        /// Whether look-ups find evicted images while they are in use elsewhere; by default `true`.
        public var keepsWeakly: Bool
        /// Whether the cache releases memory when the machine or the cgroup is short of it; by default `false`.
        ///
        /// The cache of a loader has `true`. Starts the one monitor of memory pressure that the process has.
        public var respondsToMemoryPressure: Bool
        /// The clock for lifetimes.
        public var now: @Sendable () -> Date

        /// Creates a configuration.
        ///
        /// ```swift
        /// var configuration = LoaderActor.Configuration()
        /// configuration.memory = MemoryCache.Configuration(costLimit: 512 << 20, lifetime: .seconds(3_600))
        /// ```
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

        /// 15 % of the memory that this process may use, and at most 768 MB; computed once.
        ///
        /// A process may use the RAM, or the memory limit of its cgroup if that is lower.
        public static let defaultCostLimit = min(MemoryBudget().byteCount / 100 * 15, 768_000_000)
    }
}

/// The statistics of a memory tier at one moment.
public struct MemoryStatistics: Sendable, Hashable {
    /// The number of entries.
    public var count = 0
    /// The cost of the entries in bytes.
    public var cost = 0
    /// The number of evicted entries that look-ups find while their images are in use elsewhere, or were recently.
    public var weakCount = 0
    /// The number of hits.
    public var hits = 0
    /// The number of misses.
    public var misses = 0
    /// The number of hits that found an evicted image in use elsewhere.
    public var weakHits = 0
    /// The number of entries that were evicted because of the limits or of memory pressure.
    public var evictions = 0
    /// The number of entries that expired.
    public var expirations = 0
    /// The number of images that were refused because they alone exceed a limit.
    public var refusals = 0
    /// The number of encoded images.
    public var encodedCount = 0
    /// The cost of the encoded images in bytes.
    public var encodedCost = 0
    /// The number of hits of encoded images.
    public var encodedHits = 0
    /// The number of misses of encoded images.
    public var encodedMisses = 0

    /// Creates statistics of an empty cache.
    ///
    /// ```swift
    /// let statistics = MemoryStatistics()
    /// print(statistics.hits)  // 0
    /// ```
    public init() {}
}
