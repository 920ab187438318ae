import Glibc
import Synchronization

/// Keeping the size limit: room is reserved in the catalogue, which all processes share, before a
/// byte is written, and given back when the file has its place or is gone.
extension EntryStore {
    /// What stands for "no room" among the system's errors.
    static let roomCall = "reserve"

    /// The entries whose files are gone that are passed over while the lock is held.
    private static let missingLimit = 256
    /// The files in a row that can't be removed, before that is given up.
    private static let failureLimit = 16
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

    /// Reserves `byteCount` bytes, and removes what must go for it.
    func reserve(
        _ byteCount: Int,
        sparing name: EntryName?,
        in folder: CacheFolder,
        now: Double
    ) throws(SystemCallError) {
        self.removeSomeExpired(in: folder, now: now)
        var wait = self.roomPatience.begin()
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
                if try self.finishRemoval(of: path, byteCount: byteCount, in: folder) {
                    self.counters.evictions.add(1, ordering: .relaxed)
                } else {
                    failures += 1
                    guard failures < Self.failureLimit else { throw SystemCallError(call: "unlink", number: EPERM) }
                }
            case .deleteDiscarded:
                self.deleteDiscarded(in: folder, fileLimit: 16)
            case .wait:
                if wait.count == 0 { self.requestHousekeeping() }
                if wait.count % 64 == 63 { self.removeLeftovers(in: folder) }
                // Others, in any process, are about to give room back.
                guard wait.pause() else { throw SystemCallError(call: Self.roomCall, number: ENOSPC) }
            }
        }
        throw SystemCallError(call: Self.roomCall, number: ENOSPC)
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
        if !isKnown, self.earlyByteCount.load(ordering: .relaxed) > self.sizeLimit / 100 - byteCount { return .wait }
        // A table that is full must grow, or an entry must go for the new one.
        let growth = region.hasRoom || !self.countsCatalogue ? 0 : catalogue.growthByteCount
        if byteCount <= self.sizeLimit, used.addingClamped(growth) <= self.sizeLimit - byteCount {
            if !region.hasRoom { try catalogue.grow() }
            catalogue.reserve(byteCount)
            // Its file was cut short meanwhile: nothing that it says holds.
            guard catalogue.region.isWhole else { return .again }
            if !isKnown { self.earlyByteCount.add(byteCount, ordering: .relaxed) }
            return .done
        }
        let discarded = Int(clamping: region[.discardedByteCount])
        let isStuck = discarded == self.stuckByteCount.load(ordering: .relaxed)
        if discarded > 0, !isStuck { return .deleteDiscarded }
        // Without a single entry there would be no room either: none needs to go.
        let isHopeless = discarded > 0 && discarded.addingClamped(byteCount) > self.sizeLimit - region.ownByteCount
        switch isHopeless ? .none : try self.evictNext(sparing: name, &catalogue, &victims, &failures, now: now) {
        case .moved(let path, let byteCount):
            if victims.isLow, region.slotCount > VictimQueue.smallSlotCount {
                if !self.victimRequest.exchange(true, ordering: .relaxed) { self.requestHousekeeping() }
            }
            return .evict(path, byteCount: byteCount)
        case .passedOver:
            return .again
        case .none:
            if region[.reservedByteCount] > 0 || !isKnown { return .wait }
            throw SystemCallError(call: Self.roomCall, number: ENOSPC)
        }
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
                if let path = try self.beginRemoval(of: victim, &catalogue) {
                    return .moved(path, byteCount: victim.byteCount)
                }
            } catch {
                self.noteRemovalError(error, of: victim.name.path)
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

    /// Removes the least recently used entries until no more than `limit` bytes are taken.
    ///
    /// - Returns: The entries that were removed, and their bytes.
    func evict(downTo limit: Int, in folder: CacheFolder) -> (count: Int, byteCount: Int) {
        var (count, bytes, failures) = (0, 0, 0)
        while !self.isClosing, failures < Self.failureLimit {
            if folder.region.slotCount > VictimQueue.smallSlotCount, count.isMultiple(of: 1_024) {
                self.refillVictims(in: folder)
            }
            let now = self.now
            let eviction = try? folder.withCatalogue { catalogue, victims throws(SystemCallError) -> Eviction in
                guard self.usedByteCount(catalogue.region) > limit else { return .none }
                return try self.evictNext(sparing: nil, &catalogue, &victims, &failures, now: now)
            }
            switch eviction {
            case .moved(let path, let byteCount):
                guard let isGone = try? self.finishRemoval(of: path, byteCount: byteCount, in: folder) else {
                    return (count, bytes)
                }
                guard isGone else {
                    failures += 1
                    continue
                }
                self.counters.evictions.add(1, ordering: .relaxed)
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

    /// The bytes of the folder that count towards the limit.
    func usedByteCount(_ region: CatalogueRegion) -> Int {
        region.usedByteCount - (self.countsCatalogue ? 0 : region.ownByteCount)
    }

    /// Picks the entries that are to go next, without the lock.
    func refillVictims(in folder: CacheFolder) {
        self.victimRequest.store(false, ordering: .relaxed)
        let region = folder.region
        let part = max(8, region.slotCount / 16_384)
        folder.fillVictims(with: VictimQueue.oldest(of: region, 0..<region.slotCount, part: part, now: self.now))
    }

    // MARK: Removing

    /// Takes a file out of its place; its bytes stay reserved until it is gone.
    ///
    /// Freeing the blocks of a file may take the disk milliseconds, and nobody needs to wait for that.
    ///
    /// - Returns: Where it is now; `nil` when there was none, or something that is no file and stays.
    func beginRemoval(
        of record: CatalogueRecord,
        _ catalogue: inout Catalogue
    ) throws(SystemCallError) -> String? {
        let folder = catalogue.folder
        guard record.name.withPath({ OwnFiles.isRegular($0, in: folder.descriptor) }) else {
            catalogue.remove(record.name)
            return nil
        }
        let path = self.makeTemporaryPath(in: folder)
        catalogue.reserve(record.byteCount)
        if self.move(record.name, to: path, in: folder) {
            catalogue.remove(record.name)
            return path
        }
        let error = SystemCallError.last("rename")
        catalogue.reserve(-record.byteCount)
        guard Self.meansMissing(error) else { throw error }
        catalogue.remove(record.name)
        return nil
    }

    /// Deletes what was taken out of its place, and gives its bytes back; says whether it is gone.
    ///
    /// Otherwise its bytes stay reserved: they are taken.
    func finishRemoval(of path: String, byteCount: Int, in folder: CacheFolder) throws(SystemCallError) -> Bool {
        guard unlinkat(folder.descriptor, path, 0) == 0 || errno == ENOENT else {
            self.noteRemovalError(.last("unlink"), of: path)
            return false
        }
        try folder.withCatalogue { catalogue, _ in catalogue.reserve(-byteCount) }
        return true
    }

    private func move(_ name: EntryName, to path: String, in folder: CacheFolder) -> Bool {
        let descriptor = folder.descriptor
        if name.withPath({ renameat(descriptor, $0, descriptor, path) }) == 0 { return true }
        // The folder of temporary files, or the entry, is missing.
        guard errno == ENOENT, (try? folder.makeSubfolder(CacheFolder.temporaryName)) != nil else { return false }
        return name.withPath { renameat(descriptor, $0, descriptor, path) } == 0
    }

    /// Removes up to two entries whose age is over, so that a cache which is only written to
    /// cleans itself in step.
    private func removeSomeExpired(in folder: CacheFolder, now: Double) {
        guard self.configuration.expiry == .access, self.maximumAge < .infinity, self.isExpiryCheckDue(now: now) else {
            return
        }
        let limit = CatalogueRecord.ticks(now - self.maximumAge)
        for _ in 0..<2 {
            let removed = try? folder.withCatalogue { catalogue, victims throws(SystemCallError) -> (String, Int)? in
                guard let oldest = victims.takeOldest(in: catalogue.region, usedUpTo: limit, now: now),
                    let path = try self.beginRemoval(of: oldest, &catalogue)
                else { return nil }
                return (path, oldest.byteCount)
            }
            guard let (path, byteCount) = removed ?? nil else { return self.noteNothingExpired(now: now) }
            _ = try? self.finishRemoval(of: path, byteCount: byteCount, in: folder)
            self.counters.expiredEntries.add(1, ordering: .relaxed)
        }
    }
}
