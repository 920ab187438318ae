import CShims
import Glibc
import Synchronization

extension EntryStore {
    /// What is known of a key without waiting for the disk.
    enum CachedAnswer {
        case hit(DiskEntry)
        case miss
        /// The disk must be asked, or something must be put right.
        case unknown
    }

    /// The largest file that is read on the caller's thread: it takes 50 microseconds.
    private static let cachedByteCountLimit = 512 << 10

    /// Looks up `key` as far as that takes no waiting: safe on any thread.
    ///
    /// A miss costs a look into memory, and a hit the reading of what the system has in memory
    /// already.
    func readCached(_ key: CacheKey) -> CachedAnswer {
        guard let folder = self.openedFolder else { return .unknown }
        let name = EntryName(key)
        let region = folder.region
        switch region.find(name) {
        case .unknown:
            return .unknown
        case .absent:
            guard folder.knowsAbsence(region), !self.looksElsewhere, !self.isCheckDue() else {
                return .unknown
            }
            self.counters.misses.add(1, ordering: .relaxed)
            return .miss
        case .found(let record, let slot, let word):
            let now = self.now
            // A use that is noted in a catalogue that was replaced is lost to all others.
            guard !region.flags.contains(.isSuperseded) else { return .unknown }
            guard let entry = try? self.readCached(key, record, in: folder, now: now) else { return .unknown }
            region.touch(slot, from: word, usedAt: CatalogueRecord.ticks(now))
            self.counters.hits.add(1, ordering: .relaxed)
            return .hit(entry)
        }
    }

    private func readCached(
        _ key: CacheKey,
        _ record: CatalogueRecord,
        in folder: CacheFolder,
        now: Double
    ) throws(SystemCallError) -> DiskEntry? {
        guard record.byteCount <= min(self.sizeLimit, Self.cachedByteCountLimit) else { return nil }
        let descriptor = record.name.withPath { cshims_open_cached(folder.descriptor, $0) }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // One byte more than there should be shows that the file ends there.
        let buffer = try EntryBuffer(byteCount: record.byteCount + 1)
        guard let base = buffer.bytes.baseAddress,
            cshims_read_cached(descriptor, base, UInt(buffer.bytes.count)) == record.byteCount,
            let (header, metadata) = buffer.check(record.byteCount, key: key),
            !self.isExpired(header, usedAt: record.usedAtSeconds, now: now)
        else { return nil }
        return buffer.makeEntry(header, metadata)
    }
}
