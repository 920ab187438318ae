import CShims
public import FoundationEssentials
import Synchronization
import TintypeConcurrency
public import TintypeImage

/// The memory tier: decoded images, within a limit of bytes, found without suspending.
///
/// Every function may be called from any thread. A look-up takes a lock that it hardly ever shares with
/// another one, for tens of nanoseconds, and allocates nothing. When the limit is passed, images go at
/// once: those that the best of several policies would not keep, which is at first the least recently used.
///
/// An image that left the cache and is still held elsewhere is found again, and comes back. One whose time is over is
/// never found, and leaves within ten seconds, whether or not the cache is used.
public final class MemoryCache: Sendable {
    private let table: StripedLock<MemoryTable, AccessBuffer>
    private let ledger: Locked<MemoryLedger>
    private let configuration: Configuration
    /// What a server sends of images, counted apart.
    private let encoded: EncodedMemory
    /// Waits until expired entries are looked for again.
    private let sleep: @Sendable (Duration) async throws -> Void
    /// Keeps threads whose buffers are full from waiting for each other.
    private let isTelling = Atomic(false)
    /// Looks for expired entries while there are some whose time will end.
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

    /// The image under `key`, which counts as its use.
    ///
    /// Takes about as long as a look-up in a dictionary, and allocates nothing.
    public func image(for key: CacheKey) -> Image? {
        self.image(for: key, countsMiss: true)
    }

    /// The same; a miss that another look follows does not count.
    @inline(__always)
    func image(for key: CacheKey, countsMiss: Bool) -> Image? {
        let ticks = cshims_ticks()
        let found = self.table.read { table, buffer in
            table.lookUp(key, ticks: ticks, noting: &buffer, countsMiss: countsMiss) { $0.image(in: $1) }
        }
        return found.isSettled ? found.value : self.settle(found, key, countsMiss: countsMiss) { $0.image }
    }

    /// The image under `key` with all that was stored with it, which counts as its use.
    public func entry(for key: CacheKey) -> MemoryEntry? {
        let ticks = cshims_ticks()
        let found = self.table.read { table, buffer in
            table.lookUp(key, ticks: ticks, noting: &buffer) { $0.entry(in: $1) }
        }
        return found.isSettled ? found.value : self.settle(found, key) { $0 }
    }

    /// The image under `key` with all that was stored with it, which counts neither as its use nor as a look-up.
    ///
    /// Does not extend its lifetime. One that left the cache and is held elsewhere is found, and does not come back.
    public func peek(_ key: CacheKey) -> MemoryEntry? {
        let found = self.table.read { table, _ in table.peek(key) }
        guard let found, found.life.isEndless || !found.life.isOver(at: self.time) else { return nil }
        return found.entry
    }

    /// Whether there is an image under `key`.
    ///
    /// Counts neither as its use nor as a look-up, and does not extend its lifetime.
    public func contains(_ key: CacheKey) -> Bool {
        self.peek(key) != nil
    }

    // MARK: Writing

    /// Keeps `image` under `key`, in place of an older one.
    ///
    /// Drops other images until the limits hold again. An image that alone is over the limit is refused,
    /// and an older one under the same key is dropped.
    ///
    /// - Parameters:
    ///   - image: The image.
    ///   - metadata: What is known about it; its expiry ends the entry in any case.
    ///   - lifetime: How long it is kept, instead of the configuration's lifetime.
    ///   - key: What it is found by.
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

    /// Keeps an image with its frames and data under `key`, in place of an older one.
    ///
    /// - Parameters:
    ///   - entry: The image; the expiry of its metadata ends the entry in any case.
    ///   - lifetime: How long it is kept, instead of the configuration's lifetime.
    ///   - key: What it is found by.
    /// - Returns: Whether it is in the cache, or why not.
    @discardableResult
    public func insert(_ entry: MemoryEntry, lifetime: Duration? = nil, for key: CacheKey) -> InsertOutcome {
        let life = self.makeLife(lifetime, expiry: entry.metadata?.expiry)
        // What left the cache is released here, after the locks.
        let (outcome, _) = self.change { $0.insert(entry, life: life, for: key, in: &$1) }
        return outcome
    }

    /// Keeps an image under `key`, unless it is obsolete in that moment; see ``ImageCache``.
    ///
    /// `isObsolete` is called while the cache is locked: it must be quick, and call nothing of it.
    func insert(
        _ image: Image,
        metadata: EntryMetadata?,
        for key: CacheKey,
        unless isObsolete: () -> Bool
    ) {
        let life = self.makeLife(nil, expiry: metadata?.expiry)
        let entry = MemoryEntry(image: image, metadata: metadata)
        // What left the cache is released here, after the locks.
        _ = self.change { isObsolete() ? nil : $0.insert(entry, life: life, for: key, in: &$1) }
    }

    /// Forgets the image under `key`, also as one that is alive elsewhere; says whether there was one.
    @discardableResult
    public func remove(_ key: CacheKey) -> Bool {
        let removed = self.change { $0.remove(key, in: &$1) }
        return self.encoded.remove(key) || removed != nil
    }

    /// Forgets the images of the family of `key`, also those that are alive elsewhere; says whether there were any.
    ///
    /// Looks at every entry; stores wait for that, and look-ups of encoded images.
    @discardableResult
    public func removeFamily(of key: CacheKey) -> Bool {
        let keys = self.table.read { table, _ in table.keys(inFamilyOf: key) }
        // What left the cache is released here, after the locks.
        let removed = self.change { ledger, table in keys.compactMap { ledger.remove($0, in: &table) } }
        return self.encoded.removeFamily(of: key) || !removed.isEmpty
    }

    /// Forgets all images, also those that are alive elsewhere.
    public func removeAll() {
        _ = self.change { $0.removeAll(in: &$1) }
        self.encoded.trim(toFraction: 0)
    }

    /// Drops the least recently used images until the rest costs at most `cost` bytes.
    ///
    /// The limits stay as they are. What is alive elsewhere is found again.
    public func trim(toCost cost: Int) {
        _ = self.change { $0.trim(toCost: cost, in: &$1) }
    }

    /// Drops the least recently used images until the rest costs at most this fraction of what all cost.
    ///
    /// 0 empties the cache; what is alive elsewhere is found again.
    public func trim(toFraction fraction: Double) {
        let fraction = fraction > 0 ? min(fraction, 1) : 0
        _ = self.change { $0.trim(toCost: Int(Double($0.statistics.cost) * fraction), in: &$1) }
        self.encoded.trim(toFraction: fraction)
    }

    /// Gives memory back when `monitor` says that it is short: half at "some", all at "full".
    ///
    /// What is alive elsewhere is found again. Another monitor takes the place of the one before.
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

    /// What a server sends of the image under `key` in an encoding, which counts as its use.
    ///
    /// Takes about as long as the look-up of an image, and allocates nothing.
    public func encodedEntry(for key: CacheKey, encoding: UInt64, countsMiss: Bool = true) -> EncodedEntry? {
        self.encoded.entry(for: key, encoding: encoding, countsMiss: countsMiss)
    }

    /// Keeps what a server sends of the image under `key` in an encoding, unless it is obsolete in that moment; see
    /// ``ImageCache``.
    public func keepEncoded(
        _ entry: EncodedEntry,
        for key: CacheKey,
        encoding: UInt64,
        unless isObsolete: () -> Bool
    ) {
        let life = self.makeLife(nil, expiry: entry.metadata.expiry)
        self.encoded.insert(entry, life: life, for: key, encoding: encoding, unless: isObsolete)
    }

    /// Forgets what a server sends of the image under `key`, in all encodings.
    func removeEncoded(of key: CacheKey) {
        self.encoded.removeAll(of: key)
    }

    // MARK: Limits and figures

    /// The bytes that the cache may hold; setting it drops at once what is over it.
    public var costLimit: Int {
        get { self.ledger.withLock { $0.limits.cost } }
        set { self.setLimits { MemoryLimits(cost: newValue, count: $0.count) } }
    }

    /// The entries that the cache may hold, or `nil` for any number; setting it drops at once
    /// what is over it.
    public var countLimit: Int? {
        get { self.ledger.withLock { $0.limits.count } }
        set { self.setLimits { MemoryLimits(cost: $0.cost, count: newValue) } }
    }

    /// What the cache holds and how it was used.
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
        // An expiry of its own overrides the default.
        let lifetime = lifetime ?? (expiry == nil ? self.configuration.lifetime : nil)
        guard lifetime != nil || expiry != nil else { return .endless }
        return EntryLife(
            start: self.time,
            lifetime: lifetime.map { Double($0.components.seconds) + Double($0.components.attoseconds) / 1e18 },
            expiry: expiry?.timeIntervalSinceReferenceDate,
            isExtendedOnRead: self.configuration.extendsLifetimeOnRead
        )
    }

    /// Changes ledger and table together, after telling the policy of all look-ups so far.
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

    /// Has expired entries leave without being asked for, as long as there are some whose time will end.
    private func beginSweeping() {
        self.sweeping.run("memory cache expiry") { [weak self, sleep = self.sleep] in
            repeat {
                guard (try? await sleep(.seconds(10))) != nil else { return }
            } while self?.sweep() ?? false
        }
    }

    /// Takes out what is expired, and says whether there is more to come.
    private func sweep() -> Bool {
        let time = self.time
        // In parts: look-ups wait for none of them for long.
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

    /// Tells the policy of the look-ups so far, unless another thread is doing so.
    private func tellUnlessTold() {
        guard !self.isTelling.exchange(true, ordering: .relaxed) else { return }
        self.ledger.withLock { self.tell(&$0) }
        self.isTelling.store(false, ordering: .relaxed)
    }

    /// Does what is left to do after a look-up.
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
        /// The bytes that the cache may hold, counted as ``MemoryEntry/cost`` and the bytes of very long keys;
        /// 0 or less holds nothing.
        ///
        /// By default 15 % of the memory that this process may use, and at most 768 MB.
        public var costLimit: Int
        /// The images that the cache may hold, or `nil` for any number.
        public var countLimit: Int?
        /// The bytes of encoded images that the cache may hold besides; 0 or less holds none.
        ///
        /// By default a quarter of the default of ``costLimit``.
        public var encodedCostLimit: Int
        /// How long an entry is kept that was stored without a lifetime or an expiry of its own; default `nil`,
        /// for as long as there is room.
        public var lifetime: Duration?
        /// Whether a look-up begins the lifetime of its entry anew; default `false`.
        ///
        /// ``MemoryCache/contains(_:)`` never does, and an expiry in the metadata is not put off.
        public var extendsLifetimeOnRead: Bool
        /// Whether images that left the cache are found again while they are held elsewhere; default `true`.
        public var keepsWeakly: Bool
        /// Whether the cache gives memory back when the machine or the cgroup is short of it; default `false`, and
        /// `true` for the cache of a loader.
        ///
        /// Starts the process' ``MemoryPressureMonitor``.
        public var respondsToMemoryPressure: Bool
        /// The clock that lifetimes are compared with.
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

        /// 15 % of the memory that this process may use (the limit of its cgroup where that is
        /// lower than the RAM), and at most 768 MB; worked out once.
        public static let defaultCostLimit = min(MemoryBudget().byteCount / 100 * 15, 768_000_000)
    }
}

/// What a memory tier holds and how it was used, at one moment.
public struct MemoryStatistics: Sendable, Hashable {
    /// The entries in the cache.
    public var count = 0
    /// The bytes that they are counted with.
    public var cost = 0
    /// The entries that left the cache and are found again while their images are held elsewhere; some may
    /// be dead already.
    public var weakCount = 0
    /// The look-ups that found an image.
    public var hits = 0
    /// The look-ups that found none.
    public var misses = 0
    /// Of the hits, those that found an image that had left the cache and was alive elsewhere.
    public var weakHits = 0
    /// The entries that were dropped to keep the limits, or because memory was short.
    public var evictions = 0
    /// The entries that were dropped because their time was over.
    public var expirations = 0
    /// The images that were refused because they alone are over a limit.
    public var refusals = 0
    /// The encoded images in the cache.
    public var encodedCount = 0
    /// The bytes that the encoded images are counted with.
    public var encodedCost = 0
    /// The look-ups that found an encoded image.
    public var encodedHits = 0
    /// The look-ups that found no encoded image.
    public var encodedMisses = 0

    /// Creates statistics of an empty cache.
    public init() {}

    /// The sum of what two caches hold and how they were used.
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
