import Glibc
import Synchronization
import TintypeConcurrency

/// Keeps the folder within its size limit: bytes are reserved in the catalogue, which all processes share, before one
/// is written, and given back when the file has its place or is gone.
final class SizeLimit: Sendable {
    /// The entries that may be passed over while the lock is held, because their files are gone.
    private static let missingLimit = 256
    /// The files in a row that can't be removed, before that is given up.
    private static let failureLimit = 16
    /// The entries that go at once for want of inodes: a store takes one or two.
    private static let inodeCount = 8
    /// More than any store has to do.
    private static let stepLimit = 1 << 20

    private enum Step {
        case done
        case evict(String, byteCount: Int)
        case again
        case deleteDiscarded
        case wait
    }

    /// What a victim has come to.
    private enum Eviction {
        case moved(String, byteCount: Int)
        /// There is no entry that could go.
        case none
        /// Some had no files, or could not be moved.
        case passedOver
    }

    /// The bytes that the folder may take.
    let byteCount: Int
    private let expiry: EntryExpiry
    private let folders: FolderHandle
    private let temporary: TemporaryFiles
    private let discarded: DiscardedEntries
    /// How long stores wait for bytes that others are about to give back.
    private let patience: Patience
    /// Whether the catalogue counts towards the limit: not in a cache so small that little else would fit.
    private let countsCatalogue: Bool
    /// Whether the housekeeper was asked for ``refillVictims(in:)``.
    private let isLowOnVictims = Atomic<Bool>(false)
    /// The bytes that were stored before all entries were known.
    private let earlyByteCount = Atomic<Int>(0)
    private let nextExpiryCheck = Locked(0.0)

    init(
        _ configuration: DiskCache.Configuration,
        _ expiry: EntryExpiry,
        _ folders: FolderHandle,
        _ temporary: TemporaryFiles,
        _ discarded: DiscardedEntries
    ) {
        self.byteCount = max(0, configuration.sizeLimit)
        self.countsCatalogue = configuration.sizeLimit >= 1 << 16
        self.expiry = expiry
        self.folders = folders
        self.temporary = temporary
        self.discarded = discarded
        self.patience = folders.closing.makePatience(.seconds(10), leaverLimit: .seconds(1), configuration)
    }

    // MARK: Reserving

    /// Reserves `byteCount` bytes, and removes what must go for it.
    ///
    /// - Throws: ``SystemCallError/noRoom`` also.
    func reserve(
        _ byteCount: Int,
        sparing name: EntryName?,
        in folder: CacheFolder,
        now: Double
    ) throws(SystemCallError) {
        self.removeSomeExpired(in: folder, now: now)
        var wait = self.patience.begin()
        var failures = 0
        for _ in 0..<Self.stepLimit {
            let step = try folder.withCatalogue { catalogue, victims throws(SystemCallError) -> Step in
                try self.reserve(byteCount, sparing: name, &catalogue, &victims, &failures, now: now)
            }
            switch step {
            case .done:
                // Also without a wait: there is none after one in vain.
                wait.succeed()
                return
            case .again:
                continue
            case .evict(let path, let byteCount):
                if try self.temporary.delete(path, byteCount: byteCount, in: folder) {
                    self.folders.counters.evictions.add(1, ordering: .relaxed)
                } else {
                    failures += 1
                    guard failures < Self.failureLimit else { throw SystemCallError(call: "unlink", number: EPERM) }
                }
            case .deleteDiscarded:
                self.discarded.delete(in: folder, fileLimit: 16)
            case .wait:
                if wait.count == 0 { self.folders.housekeeping.send() }
                if wait.count % 64 == 63 { self.temporary.removeLeftovers(in: folder) }
                // Others, in any process, are about to give bytes back.
                guard wait.pause() else { throw .noRoom }
            }
        }
        throw .noRoom
    }

    private func reserve(
        _ byteCount: Int,
        sparing name: EntryName?,
        _ catalogue: inout Catalogue,
        _ victims: inout VictimQueue,
        _ failures: inout Int,
        now: Double
    ) throws(SystemCallError) -> Step {
        let region = catalogue.region
        let used = self.usedByteCount(region)
        // Until all entries are known, no more than the permitted 1 % may be added to them.
        let isKnown = region.flags.contains(.isComplete)
        if !isKnown, self.earlyByteCount.load(ordering: .relaxed) > self.byteCount / 100 - byteCount { return .wait }
        // A table that is full must grow, or an entry must go for the new one.
        let growth = region.hasRoom || !self.countsCatalogue ? 0 : catalogue.growthByteCount
        if byteCount <= self.byteCount, used.addingClamped(growth) <= self.byteCount - byteCount {
            if !region.hasRoom { try catalogue.grow() }
            catalogue.reserve(byteCount)
            // Its file was cut short meanwhile: nothing that it says holds.
            guard catalogue.region.isWhole else { return .again }
            if !isKnown { self.earlyByteCount.add(byteCount, ordering: .relaxed) }
            return .done
        }
        let discarded = Int(clamping: region[.discardedByteCount])
        if discarded > 0, !self.discarded.areStuck(byteCount: discarded) { return .deleteDiscarded }
        // Without a single entry there would not be enough either: none needs to go.
        let isHopeless = discarded > 0 && discarded.addingClamped(byteCount) > self.byteCount - region.ownByteCount
        switch isHopeless ? .none : try self.evictNext(sparing: name, &catalogue, &victims, &failures, now: now) {
        case .moved(let path, let byteCount):
            if victims.isLow, region.slotCount > VictimQueue.smallSlotCount {
                if !self.isLowOnVictims.exchange(true, ordering: .relaxed) { self.folders.housekeeping.send() }
            }
            return .evict(path, byteCount: byteCount)
        case .passedOver:
            return .again
        case .none:
            if region[.reservedByteCount] > 0 || !isKnown { return .wait }
            guard !isHopeless, region[.byteCount] > 0 else { throw .noRoom }
            // Bytes are counted, and no entry is found: slots were lost, and only the folder knows what is there.
            region.recountTotals()
            region.flags.remove(.isComplete)
            return .wait
        }
    }

    /// Removes up to two entries whose age is over, so that a cache which is only written to
    /// cleans itself in step.
    private func removeSomeExpired(in folder: CacheFolder, now: Double) {
        let maximumAge = self.expiry.maximumAge
        guard self.expiry.start == .access, maximumAge < .infinity,
            self.nextExpiryCheck.withLock({ now >= $0 || now < $0 - 61 })
        else { return }
        let limit = CatalogueRecord.ticks(now - maximumAge)
        for _ in 0..<2 {
            let removed = try? folder.withCatalogue { catalogue, victims throws(SystemCallError) -> (String, Int)? in
                guard let oldest = victims.takeOldest(in: catalogue.region, usedUpTo: limit, now: now),
                    let path = try self.temporary.takeOut(oldest, &catalogue)
                else { return nil }
                return (path, oldest.byteCount)
            }
            guard let (path, byteCount) = removed ?? nil else {
                return self.nextExpiryCheck.withLock { $0 = now + min(60, maximumAge / 100) }
            }
            _ = try? self.temporary.delete(path, byteCount: byteCount, in: folder)
            self.folders.counters.expiredEntries.add(1, ordering: .relaxed)
        }
    }

    // MARK: Evicting

    /// Removes the least recently used entries until no more than `limit` bytes are taken.
    ///
    /// - Returns: The entries that were removed, and their bytes.
    func evict(downTo limit: Int, in folder: CacheFolder) -> (count: Int, byteCount: Int) {
        self.evict(in: folder) { region, _ in self.usedByteCount(region) > limit }
    }

    /// Removes some of the least recently used entries and all empty folders, because the file system has no inode left for
    /// another file; says whether there were any.
    func evictForInodes(in folder: CacheFolder) -> Bool {
        let evicted = self.evict(in: folder) { _, count in count < Self.inodeCount }.count
        // While the lock is held: a store that moves a file into such a folder makes it again.
        let removed = try? folder.withCatalogue { _, _ in
            CacheFolder.shardPaths.count { unlinkat(folder.descriptor, $0, AT_REMOVEDIR) == 0 }
        }
        return evicted + (removed ?? 0) > 0
    }

    private func evict(
        in folder: CacheFolder,
        while isOver: (_ region: CatalogueRegion, _ count: Int) -> Bool
    ) -> (count: Int, byteCount: Int) {
        var (count, bytes, failures) = (0, 0, 0)
        guard isOver(folder.region, 0) else { return (0, 0) }
        while !self.folders.closing.isSet, failures < Self.failureLimit {
            if folder.region.slotCount > VictimQueue.smallSlotCount, count.isMultiple(of: 1_024) {
                self.refillVictims(in: folder)
            }
            let now = self.expiry.now
            let eviction = try? folder.withCatalogue { catalogue, victims throws(SystemCallError) -> Eviction in
                guard isOver(catalogue.region, count) else { return .none }
                return try self.evictNext(sparing: nil, &catalogue, &victims, &failures, now: now)
            }
            switch eviction {
            case .moved(let path, let byteCount):
                guard let isGone = try? self.temporary.delete(path, byteCount: byteCount, in: folder) else {
                    return (count, bytes)
                }
                guard isGone else {
                    failures += 1
                    continue
                }
                self.folders.counters.evictions.add(1, ordering: .relaxed)
                count += 1
                bytes += byteCount
            case .passedOver:
                continue
            case .some(.none), nil:
                return (count, bytes)
            }
        }
        return (count, bytes)
    }

    /// Picks the entries that are to go next, without the lock, if a store has asked for it.
    func refillVictimsIfLow(in folder: CacheFolder) {
        if self.isLowOnVictims.load(ordering: .relaxed) { self.refillVictims(in: folder) }
    }

    private func refillVictims(in folder: CacheFolder) {
        self.isLowOnVictims.store(false, ordering: .relaxed)
        let region = folder.region
        let part = max(8, region.slotCount / 16_384)
        let now = self.expiry.now
        folder.fillVictims(with: VictimQueue.oldest(of: region, 0..<region.slotCount, part: part, now: now))
    }

    /// The bytes of the folder that count towards the limit.
    private func usedByteCount(_ region: CatalogueRegion) -> Int {
        region.usedByteCount - (self.countsCatalogue ? 0 : region.ownByteCount)
    }

    /// Takes the next entry that is to go out of its place.
    private func evictNext(
        sparing name: EntryName?,
        _ catalogue: inout Catalogue,
        _ victims: inout VictimQueue,
        _ failures: inout Int,
        now: Double
    ) throws(SystemCallError) -> Eviction {
        for _ in 0..<Self.missingLimit {
            guard let victim = victims.takeVictim(in: catalogue.region, sparing: name, now: now) else { return .none }
            do throws(SystemCallError) {
                if let path = try self.temporary.takeOut(victim, &catalogue) {
                    return .moved(path, byteCount: victim.byteCount)
                }
            } catch {
                self.folders.counters.noteRemovalError(error, of: victim.name.path)
                failures += 1
                guard failures < Self.failureLimit else { throw error }
                // The last in turn from now on: it must not be in the way of all the others.
                var kept = victim
                kept.usedAt = CatalogueRecord.ticks(now)
                catalogue.region.put(kept)
            }
        }
        return .passedOver
    }
}

extension SystemCallError {
    /// Enough can't be removed for what is to be stored.
    static let noRoom = SystemCallError(call: "reserve", number: ENOSPC)
}
