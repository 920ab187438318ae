import Glibc
import Synchronization

/// Keeping the size limit: room is reserved in the catalogue, which all processes share, before a
/// byte is written, and given back when the file has its place or is gone.
extension EntryStore {
    /// What stands for "no room" among the system's errors.
    static let roomCall = "reserve"

    private enum Step {
        case done
        case evict(String, byteCount: Int)
        case deleteDiscarded
        case wait
    }

    /// Reserves `byteCount` bytes, and removes what must go for it.
    func reserve(
        _ byteCount: Int,
        sparing name: EntryName?,
        in folder: CacheFolder,
        now: Double
    ) throws(SystemCallError) {
        self.removeSomeExpired(in: folder, now: now)
        var waits = 0
        while true {
            let step = try folder.withCatalogue { catalogue, victims throws(SystemCallError) -> Step in
                try self.reserve(byteCount, sparing: name, &catalogue, &victims, now: now)
            }
            switch step {
            case .done:
                return
            case .evict(let path, let byteCount):
                try self.finishRemoval(of: path, byteCount: byteCount, in: folder)
                self.counters.evictions.add(1, ordering: .relaxed)
            case .deleteDiscarded:
                self.deleteDiscarded(in: folder, fileLimit: 16)
            case .wait:
                waits += 1
                guard waits < 10_000, !self.isClosing.load(ordering: .relaxed) || waits < 1_000 else {
                    throw SystemCallError(call: Self.roomCall, number: ENOSPC)
                }
                if waits == 1 { self.requestHousekeeping() }
                if waits.isMultiple(of: 64) { self.removeLeftovers(in: folder) }
                // Others, in any process, are about to give room back.
                usleep(1_000)
            }
        }
    }

    private func reserve(
        _ byteCount: Int,
        sparing name: EntryName?,
        _ catalogue: inout Catalogue,
        _ victims: inout VictimQueue,
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
            if !isKnown { self.earlyByteCount.add(byteCount, ordering: .relaxed) }
            catalogue.reserve(byteCount)
            return .done
        }
        if region[.discardedByteCount] > 0 { return .deleteDiscarded }
        guard let victim = victims.takeVictim(in: region, sparing: name, now: now) else {
            if region[.reservedByteCount] > 0 || !isKnown { return .wait }
            throw SystemCallError(call: Self.roomCall, number: ENOSPC)
        }
        if victims.isLow, region.slotCount > VictimQueue.smallSlotCount {
            if !self.victimRequest.exchange(true, ordering: .relaxed) { self.requestHousekeeping() }
        }
        guard let path = try self.beginRemoval(of: victim, &catalogue) else {
            return try self.reserve(byteCount, sparing: name, &catalogue, &victims, now: now)
        }
        return .evict(path, byteCount: victim.byteCount)
    }

    /// Removes the least recently used entries until no more than `limit` bytes are taken.
    ///
    /// - Returns: The entries that were removed, and their bytes.
    func evict(downTo limit: Int, in folder: CacheFolder) -> (count: Int, byteCount: Int) {
        var (count, bytes) = (0, 0)
        while !self.isClosing.load(ordering: .relaxed) {
            if folder.region.slotCount > VictimQueue.smallSlotCount, count.isMultiple(of: 1_024) {
                self.refillVictims(in: folder)
            }
            let now = self.now
            let removed = try? folder.withCatalogue { catalogue, victims throws(SystemCallError) -> (String, Int)? in
                while self.usedByteCount(catalogue.region) > limit {
                    guard let victim = victims.takeVictim(in: catalogue.region, sparing: nil, now: now) else { break }
                    if let path = try self.beginRemoval(of: victim, &catalogue) { return (path, victim.byteCount) }
                }
                return nil
            }
            guard let (path, byteCount) = removed ?? nil else { break }
            guard (try? self.finishRemoval(of: path, byteCount: byteCount, in: folder)) != nil else { break }
            self.counters.evictions.add(1, ordering: .relaxed)
            count += 1
            bytes += byteCount
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
    /// - Returns: Where it is now; `nil` when there was none.
    func beginRemoval(
        of record: CatalogueRecord,
        _ catalogue: inout Catalogue
    ) throws(SystemCallError) -> String? {
        let folder = catalogue.folder
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

    /// Deletes what was taken out of its place, and gives its bytes back.
    func finishRemoval(of path: String, byteCount: Int, in folder: CacheFolder) throws(SystemCallError) {
        unlinkat(folder.descriptor, path, 0)
        try folder.withCatalogue { catalogue, _ in catalogue.reserve(-byteCount) }
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
            try? self.finishRemoval(of: path, byteCount: byteCount, in: folder)
            self.counters.expiredEntries.add(1, ordering: .relaxed)
        }
    }
}
