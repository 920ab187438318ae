import FoundationEssentials

/// The folder of a disk tier, by roles: what looks up, what stores, what keeps the limit.
///
///     <directory>/entries/ab/...   one file an entry, called by the first 96 bits of its key's SHA-256
///     <directory>/temporary/...    files that are being written, or removed
///     <directory>/discarded/...    what was cleared and waits to be deleted
///     <directory>/catalogue        name, size and last use of each entry
///     <directory>/lock             what keeps the processes apart
///     <directory>/namespaces/...   folders of the same kind
final class EntryStore: Sendable {
    let expiry: EntryExpiry
    let folders: FolderHandle
    let temporary: TemporaryFiles
    let discarded: DiscardedEntries
    let limit: SizeLimit
    let reader: EntryReader
    let writer: EntryWriter

    /// Touches no file.
    init(_ configuration: DiskCache.Configuration) {
        let (expiry, folders) = (EntryExpiry(configuration), FolderHandle(configuration))
        let (temporary, discarded) = (TemporaryFiles(folders.counters), DiscardedEntries(folders))
        self.expiry = expiry
        self.folders = folders
        self.temporary = temporary
        self.discarded = discarded
        self.limit = SizeLimit(configuration, expiry, folders, temporary, discarded)
        self.reader = EntryReader(configuration, expiry, folders)
        self.writer = EntryWriter(
            folders: folders,
            limit: self.limit,
            expiry: expiry,
            temporary: temporary,
            discarded: discarded,
            heads: self.reader.heads
        )
    }

    var counters: DiskCounters { self.folders.counters }

    /// What is known now, without looking at the folder; `nil` while not all entries are known.
    func statistics() -> DiskStatistics? {
        guard let folder = self.folders.openInPlace() else { return DiskStatistics(self, nil) }
        let region = (try? folder.withCatalogue { catalogue, _ in catalogue.region }) ?? folder.region
        if case .readOnly = folder.mode { return DiskStatistics(self, region) }
        return region.flags.contains(.isComplete) ? DiskStatistics(self, region) : nil
    }

    /// What is known now, whether or not it is all.
    var knownStatistics: DiskStatistics { DiskStatistics(self, self.folders.opened?.region) }
}

/// When the time of an entry on disk is over.
struct EntryExpiry: Sendable {
    /// The age from which on an entry is a miss, in seconds.
    let maximumAge: Double
    /// What the age counts from.
    let start: DiskCache.Expiry
    private let clock: @Sendable () -> Date

    init(_ configuration: DiskCache.Configuration) {
        let age = configuration.maximumAge?.components
        self.maximumAge = age.map { Double($0.seconds) + Double($0.attoseconds) / 1e18 } ?? .infinity
        self.start = configuration.expiry
        self.clock = configuration.now
    }

    /// The time in seconds since 1970.
    var now: Double { self.clock().timeIntervalSince1970 }

    /// Whether an entry's time is over.
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

    /// Whether an entry's time may be over, as far as the catalogue knows; the header knows better.
    func mayBeOver(_ record: CatalogueRecord, now: Double) -> Bool {
        if record.deadline != 0, Double(record.deadline) <= now + 1 { return true }
        return switch self.start {
        case .access: now - record.usedAtSeconds >= self.maximumAge
        // Whole seconds.
        case .modification: now - Double(record.storedAt) >= self.maximumAge
        case .creation: self.maximumAge < .infinity
        }
    }
}
