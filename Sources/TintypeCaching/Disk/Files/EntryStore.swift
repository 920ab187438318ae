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
            discarded: discarded
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
