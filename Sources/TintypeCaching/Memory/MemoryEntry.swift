public import FoundationEssentials
public import TintypeImage

/// What the memory tier holds under a key.
public struct MemoryEntry: Sendable {
    /// The decoded picture; of an animation the one that stands for it.
    public let image: Image
    /// What is known about it, if it was stored with metadata.
    public let metadata: EntryMetadata?
    /// The frames of an animation, if they are kept decoded; a frame may occur more than once.
    public let frames: [Image]
    /// Bytes that ride along, such as the encoded picture.
    public let data: Data?

    /// Creates an entry.
    public init(image: Image, metadata: EntryMetadata? = nil, frames: [Image] = [], data: Data? = nil) {
        self.image = image
        self.metadata = metadata
        self.frames = frames
        self.data = data
    }

    /// The bytes that the entry is counted with: the pixel planes and profiles of its distinct pictures,
    /// its metadata, and the data that rides along.
    ///
    /// Pictures that share their pixels are counted once.
    public var cost: Int {
        let single = Self.cost(of: self.image) + (self.data?.count ?? 0) + (self.metadata?.memoryByteCount ?? 0)
        guard !self.frames.isEmpty else { return single }
        var seen: Set = [ObjectIdentifier(self.image.pixels)]
        return self.frames.reduce(single) { sum, frame in
            seen.insert(ObjectIdentifier(frame.pixels)).inserted ? sum + Self.cost(of: frame) : sum
        }
    }

    /// The cost of the entry with that of its key, where the key is a long one.
    func cost(under key: CacheKey) -> Int {
        self.cost + key.excessByteCount
    }

    /// The bytes of the pixels of one picture and of its profile.
    static func cost(of image: Image) -> Int {
        image.pixels.byteCount + (image.colorProfile?.data.count ?? 0)
    }
}
