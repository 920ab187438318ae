public import FoundationEssentials

/// What the disk tier holds under a key.
public struct DiskEntry: Sendable {
    /// The encoded bytes, exactly as they were stored.
    public let data: Data
    /// What was stored with them.
    public let metadata: EntryMetadata
    /// When they were stored.
    public let storedAt: Date

    /// Creates an entry.
    public init(data: Data, metadata: EntryMetadata, storedAt: Date) {
        self.data = data
        self.metadata = metadata
        self.storedAt = storedAt
    }
}
