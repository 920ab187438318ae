// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The folder of a disk tier, and the objects that look up, store and limit entries in it.
///
///     <directory>/entries/ab/...   one file for each entry, see EntryName
///     <directory>/temporary/...    files that are being written or removed
///     <directory>/discarded/...    cleared entries that wait for deletion
///     <directory>/catalogue        the name, size and last use of each entry
///     <directory>/lock             the lock between processes
///     <directory>/namespaces/...   folders of the same kind
final class EntryStore: Sendable {
    let expiry: EntryExpiry
    let folders: FolderHandle
    let temporary: TemporaryFiles
    let discarded: DiscardedEntries
    let eviction: DiskEviction
    let reader: EntryReader
    let writer: EntryWriter

    /// Creates a store without accessing the disk.
    init(_ configuration: DiskCache.Configuration) {
        let (expiry, folders) = (EntryExpiry(configuration), FolderHandle(configuration))
        let (temporary, discarded) = (TemporaryFiles(folders.counters), DiscardedEntries(folders))
        self.expiry = expiry
        self.folders = folders
        self.temporary = temporary
        self.discarded = discarded
        self.eviction = DiskEviction(configuration, expiry, folders, temporary, discarded)
        self.reader = EntryReader(configuration, expiry, folders)
        self.writer = EntryWriter(
            folders: folders,
            eviction: self.eviction,
            expiry: expiry,
            temporary: temporary,
            discarded: discarded,
            heads: self.reader.heads
        )
    }

    var counters: DiskCounters { self.folders.counters }

    /// Returns the statistics without reading the folder, or `nil` while the catalogue is incomplete.
    func statistics() -> DiskStatistics? {
        guard let folder = self.folders.openInPlace() else { return DiskStatistics(self, nil) }
        let region = (try? folder.withCatalogue { catalogue, _ in catalogue.region }) ?? folder.region
        if case .readOnly = folder.mode { return DiskStatistics(self, region) }
        return region.flags.contains(.isComplete) ? DiskStatistics(self, region) : nil
    }

    /// The statistics of the known entries, even if the catalogue is incomplete.
    var knownStatistics: DiskStatistics { DiskStatistics(self, self.folders.opened?.region) }
}

/// The rules for the expiry of entries on disk.
struct EntryExpiry: Sendable {
    /// The age in seconds from which an entry is a miss.
    let maximumAge: Double
    /// The event from which the age counts.
    let start: DiskCache.Expiry
    private let clock: @Sendable () -> Date

    init(_ configuration: DiskCache.Configuration) {
        let age = configuration.maximumAge?.components
        self.maximumAge = age.map { Double($0.seconds) + Double($0.attoseconds) / 1e18 } ?? .infinity
        self.start = configuration.expiry
        self.clock = configuration.now
    }

    /// The current time in seconds since 1970.
    var now: Double { self.clock().timeIntervalSince1970 }

    /// Returns whether an entry has expired.
    func isOver(_ header: EntryHeader, usedAt: Double, now: Double) -> Bool {
        if header.expiresAt <= now { return true }
        let start =
            switch self.start {
            case .access: usedAt
            case .modification: header.storedAt
            case .creation: header.createdAt
            }
        return now - start >= self.maximumAge
    }

    /// Returns whether an entry may have expired according to its record; only the header is exact.
    func mayBeOver(_ record: CatalogueRecord, now: Double) -> Bool {
        if record.deadline != 0, Double(record.deadline) <= now + 1 { return true }
        return switch self.start {
        case .access: now - record.usedAtSeconds >= self.maximumAge
        // The record has whole seconds.
        case .modification: now - Double(record.storedAt) >= self.maximumAge
        case .creation: self.maximumAge < .infinity
        }
    }
}
