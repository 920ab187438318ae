/// What a cleaning of the disk tier removed.
public struct PruneResult: Sendable, Hashable {
    /// The entries that were too old.
    public internal(set) var expiredEntries = 0
    /// The entries that had to go to keep the size limit, the least recently used first.
    public internal(set) var evictedEntries = 0
    /// The files that had begun like no entry does.
    public internal(set) var damagedEntries = 0
    /// The temporary files that killed writers had left behind.
    public internal(set) var temporaryFiles = 0
    /// The bytes of the entries that were removed.
    public internal(set) var freedByteCount = 0

    /// Creates the result of a cleaning that found nothing to do.
    public init() {}
}
