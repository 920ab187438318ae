import Synchronization

/// The folder of a disk tier, by roles: what looks up, what stores, what keeps the limit.
///
///     <directory>/entries/ab/...   one file an entry, called by the first 96 bits of its key's SHA-256
///     <directory>/temporary/...    files that are being written, or removed
///     <directory>/discarded/...    what was cleared and waits to be deleted
///     <directory>/catalogue        name, size and last use of each entry
///     <directory>/lock             what keeps the processes apart
///     <directory>/namespaces/...   folders of the same kind
final class EntryStore: Sendable {
    let counters: DiskCounters
    let expiry: EntryExpiry
    let housekeeping = HousekeepingRequest()
    let closing = Closing()
    let folders: FolderHandle
    let temporary: TemporaryFiles
    let discarded: DiscardedEntries
    let limit: SizeLimit
    let reader: EntryReader
    let writer: EntryWriter

    /// Touches no file.
    init(_ configuration: DiskCache.Configuration) {
        self.counters = DiskCounters(directory: configuration.folderPath)
        self.expiry = EntryExpiry(configuration)
        self.folders = FolderHandle(configuration, self.closing, self.counters, self.housekeeping)
        self.temporary = TemporaryFiles(self.counters)
        self.discarded = DiscardedEntries(self.closing, self.counters, self.housekeeping)
        self.limit = SizeLimit(
            configuration,
            self.closing,
            self.expiry,
            self.temporary,
            self.discarded,
            self.counters,
            self.housekeeping
        )
        self.reader = EntryReader(configuration, self.expiry, self.folders, self.counters)
        self.writer = EntryWriter(
            folders: self.folders,
            limit: self.limit,
            expiry: self.expiry,
            temporary: self.temporary,
            discarded: self.discarded
        )
    }

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
