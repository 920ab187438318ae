/// What a disk tier holds and how it was used since it was opened.
public struct DiskStatistics: Sendable {
    /// The path of the cache folder.
    public let directory: String
    /// The entries in the folder.
    public let entryCount: Int
    /// The bytes of their files.
    public let byteCount: Int
    /// The bytes that the files may take.
    public let sizeLimit: Int
    /// The look-ups that found an entry.
    public let hits: Int
    /// The look-ups that found none, or one that was expired or damaged.
    public let misses: Int
    /// The damaged entries that were found and removed.
    public let damagedEntries: Int
    /// The entries that were removed to keep the size limit.
    public let evictions: Int
    /// The entries that were removed because of their age.
    public let expiredEntries: Int
    /// The stores that failed.
    public let storeErrors: Int
    /// Why the last of them failed.
    public let lastStoreError: CacheError?
}
