public import FoundationEssentials
public import TintypeImage

/// What the memory tier holds under a key.
public struct MemoryEntry: Sendable {
    /// The decoded image; of an animation the one that stands for it.
    public let image: Image
    /// What is known about it, if it was stored with metadata.
    public let metadata: EntryMetadata?
    /// The frames of an animation, if they are kept decoded; a frame may occur more than once.
    public let frames: [Image]
    /// Bytes that ride along, such as the encoded image.
    public let data: Data?

    /// Creates an entry.
    public init(image: Image, metadata: EntryMetadata? = nil, frames: [Image] = [], data: Data? = nil) {
        self.image = image
        self.metadata = metadata
        self.frames = frames
        self.data = data
    }

    /// The bytes that the entry is counted with: the pixel planes and profiles of its distinct images,
    /// its metadata, and the data that rides along.
    ///
    /// Images that share their pixels are counted once.
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

    /// The bytes of the pixels of one image and of its profile.
    static func cost(of image: Image) -> Int {
        image.pixels.byteCount + (image.colorProfile?.data.count ?? 0)
    }
}

/// What became of an image that was given to the memory tier.
public enum InsertOutcome: Sendable, Hashable {
    /// The image is in the cache.
    case stored
    /// The image is not in the cache, and neither is an older one under the same key.
    case refused(Refusal)

    /// Why an image was not taken.
    public enum Refusal: Sendable, Hashable, CustomStringConvertible {
        /// The image alone costs more than the whole cache may hold.
        case costOverLimit(cost: Int, limit: Int)
        /// The cache may hold no entry at all.
        case countLimitIsZero

        public var description: String {
            switch self {
            case .costOverLimit(let cost, let limit):
                "The image costs \(cost) bytes and the memory cache may hold \(limit); raise its cost limit."
            case .countLimitIsZero:
                "The count limit of the memory cache is 0; raise it."
            }
        }
    }
}

/// When the time of an entry is over, in seconds since the reference date.
struct EntryLife: Sendable {
    /// When the entry ends, unless it is read before; infinity for never.
    private(set) var end: Double
    /// How long it goes on after it was read; infinity when reading changes nothing.
    private let renewal: Double
    /// The end that no reading puts off.
    private let lastEnd: Double

    /// A life without an end.
    static let endless = EntryLife(start: 0, lifetime: nil, expiry: nil, isExtendedOnRead: false)

    /// - Parameters:
    ///   - start: Now.
    ///   - lifetime: The seconds that it lasts from now, or from its last reading.
    ///   - expiry: When it ends at the latest.
    ///   - isExtendedOnRead: Whether reading begins the lifetime anew.
    init(start: Double, lifetime: Double?, expiry: Double?, isExtendedOnRead: Bool) {
        self.lastEnd = expiry ?? .infinity
        self.end = min(self.lastEnd, lifetime.map { start + $0 } ?? .infinity)
        self.renewal = isExtendedOnRead ? lifetime ?? .infinity : .infinity
    }

    /// Whether the clock has to be asked at all.
    var isEndless: Bool { self.end == .infinity }

    /// Whether it is over at `time`.
    func isOver(at time: Double) -> Bool {
        self.end <= time
    }

    /// Whether a reading changes the end.
    var isExtendedOnRead: Bool { self.renewal < .infinity }

    /// The end after a reading at `time`.
    mutating func extend(at time: Double) {
        guard self.isExtendedOnRead else { return }
        self.end = min(self.lastEnd, max(self.end, time + self.renewal))
    }
}
