/// What a look-up in both tiers found.
public enum CacheHit: Sendable {
    /// A decoded picture.
    case memory(MemoryEntry)
    /// Encoded bytes, which are still to be decoded.
    case disk(DiskEntry)
}
