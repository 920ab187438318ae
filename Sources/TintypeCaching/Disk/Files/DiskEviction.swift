// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import TintypeConcurrency

/// Keeps the folder within its size limit, and evicts entries for new ones.
///
/// A store reserves its bytes in the catalogue, which all processes share, before it writes. It releases them when the
/// file is in place or deleted.
final class DiskEviction: Sendable {
    /// The maximum number of entries without files that are skipped under one lock.
    private static let missingLimit = 256
    /// The number of failed removals after which an operation gives up.
    private static let failureLimit = 16
    /// The number of entries to evict at once if inodes are short; a store needs one or two.
    private static let inodeCount = 8
    /// A limit that no store reaches.
    private static let stepLimit = 1 << 20

    private enum Step {
        case done
        case evict(String, byteCount: Int)
        case again
        case deleteDiscarded
        case wait
    }

    /// The result of an attempt to evict an entry.
    private enum Eviction {
        case moved(String, byteCount: Int)
        /// There is no entry to evict.
        case none
        /// Some entries had no files or could not be moved.
        case passedOver
    }

    /// The maximum bytes of the folder.
    let sizeLimit: Int
    private let expiry: EntryExpiry
    private let folders: FolderHandle
    private let temporary: TemporaryFiles
    private let discarded: DiscardedEntries
    /// The patience of stores that wait for bytes which others are about to release.
    private let patience: Patience
    /// Whether the catalogue counts towards the limit, which would leave a very small cache little room.
    private let countsCatalogue: Bool
    /// Whether a store has asked the housekeeper for ``refillVictims(in:)``.
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
        self.sizeLimit = max(0, configuration.sizeLimit)
        self.countsCatalogue = configuration.sizeLimit >= 1 << 16
        self.expiry = expiry
        self.folders = folders
        self.temporary = temporary
        self.discarded = discarded
        self.patience = folders.closing.makePatience(.seconds(10), leaverLimit: .seconds(1), configuration)
    }

    // MARK: Reserving

    /// Reserves `byteCount` bytes, and evicts entries if necessary.
    ///
    /// - Throws: Also ``SystemCallError/noRoom``.
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
                // Report success even without a wait, because a failed wait prevents further waits until then.
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
                // Other threads or processes are about to release bytes.
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
        // Until all entries are known, stores may add only 1 % of the limit.
        let isKnown = region.flags.contains(.isComplete)
        if !isKnown, self.earlyByteCount.load(ordering: .relaxed) > self.sizeLimit / 100 - byteCount { return .wait }
        // A full table must grow, unless an entry is evicted for the new one.
        let growth = region.hasRoom || !self.countsCatalogue ? 0 : catalogue.growthByteCount
        if byteCount <= self.sizeLimit, used.addingClamped(growth) <= self.sizeLimit - byteCount {
            if !region.hasRoom { try catalogue.grow() }
            catalogue.reserve(byteCount)
            // The catalogue was truncated meanwhile, so its contents are not valid.
            guard catalogue.region.isWhole else { return .again }
            if !isKnown { self.earlyByteCount.add(byteCount, ordering: .relaxed) }
            return .done
        }
        let discarded = Int(clamping: region[.discardedByteCount])
        if discarded > 0, !self.discarded.areStuck(byteCount: discarded) { return .deleteDiscarded }
        // Even without any entry the room would not suffice, so do not evict entries.
        let isHopeless = discarded > 0 && discarded.addingClamped(byteCount) > self.sizeLimit - region.ownByteCount
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
            // The totals count bytes, but there is no entry: slots were lost, so the folder must be read again.
            region.recountTotals()
            region.flags.remove(.isComplete)
            return .wait
        }
    }

    /// Removes up to two expired entries, so that a cache with only writes cleans itself gradually.
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

    /// Evicts the least recently used entries until the folder has at most `limit` bytes.
    ///
    /// - Returns: The number of entries that were removed, and their bytes.
    func evict(downTo limit: Int, in folder: CacheFolder) -> (count: Int, byteCount: Int) {
        self.evict(in: folder) { region, _ in self.usedByteCount(region) > limit }
    }

    /// Evicts some of the least recently used entries, and removes all empty folders, to free inodes.
    ///
    /// - Returns: Whether it removed any.
    func evictForInodes(in folder: CacheFolder) -> Bool {
        let evicted = self.evict(in: folder) { _, count in count < Self.inodeCount }.count
        // Hold the lock, so that a store cannot move a file into a folder that is being removed.
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

    /// Finds the next entries to evict, without the lock, if a store has asked for it.
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

    /// Returns the bytes of the folder that count towards the limit.
    private func usedByteCount(_ region: CatalogueRegion) -> Int {
        region.usedByteCount - (self.countsCatalogue ? 0 : region.ownByteCount)
    }

    /// Moves the file of the next entry to evict out of its place.
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
                // Mark the entry as just used, so that it does not block the eviction of others.
                var kept = victim
                kept.usedAt = CatalogueRecord.ticks(now)
                catalogue.region.put(kept)
            }
        }
        return .passedOver
    }
}

extension SystemCallError {
    /// The error of a store for which not enough entries can be removed.
    static let noRoom = SystemCallError(call: "reserve", number: ENOSPC)
}
