public import TintypeImage

/// What the memory tier holds under a key.
public struct MemoryEntry: Sendable {
    /// The decoded picture.
    public let image: Image
    /// What is known about it, if it was stored with metadata.
    public let metadata: EntryMetadata?

    /// Creates an entry.
    public init(image: Image, metadata: EntryMetadata?) {
        self.image = image
        self.metadata = metadata
    }

    /// The bytes that the entry is counted with: its pixels, its profile and a fixed overhead.
    static func cost(of image: Image) -> Int {
        image.pixels.byteCount + (image.colorProfile?.data.count ?? 0) + self.overhead
    }

    /// About what the key, the metadata and the tables take for one entry.
    private static let overhead = 512
}
