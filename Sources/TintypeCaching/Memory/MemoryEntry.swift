// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeImage

/// An entry of the memory tier.
public struct MemoryEntry: Sendable {
    /// The decoded image, or the poster image of an animation.
    public let image: Image
    /// The metadata, if the image was stored with any.
    public let metadata: EntryMetadata?
    /// The decoded frames of an animation, if it was stored with them; a frame may occur more than once.
    public let frames: [Image]
    /// Bytes that accompany the image, such as its encoded form.
    public let data: Data?

    /// Creates an entry.
    ///
    /// ```swift
    /// let entry = MemoryEntry(image: image, metadata: metadata)
    /// print(entry.cost)
    /// ```
    public init(image: Image, metadata: EntryMetadata? = nil, frames: [Image] = [], data: Data? = nil) {
        self.image = image
        self.metadata = metadata
        self.frames = frames
        self.data = data
    }

    /// The cost of the entry in bytes: pixels and colour profiles of its distinct images, metadata, and ``data``.
    ///
    /// Images that share their pixels count once.
    public var cost: Int {
        let single = Self.cost(of: self.image) + (self.data?.count ?? 0) + (self.metadata?.memoryByteCount ?? 0)
        guard !self.frames.isEmpty else { return single }
        var seen: Set = [ObjectIdentifier(self.image.pixels)]
        return self.frames.reduce(single) { sum, frame in
            seen.insert(ObjectIdentifier(frame.pixels)).inserted ? sum + Self.cost(of: frame) : sum
        }
    }

    /// Returns the cost of the entry and of its key, which counts only if it is long.
    func cost(under key: CacheKey) -> Int {
        self.cost + key.excessByteCount
    }

    /// Returns the bytes of the pixels and the colour profile of an image.
    static func cost(of image: Image) -> Int {
        image.pixels.byteCount + (image.colorProfile?.data.count ?? 0)
    }
}

/// The result of storing an image in the memory tier.
public enum InsertOutcome: Sendable, Hashable {
    /// The image is in the cache.
    case stored
    /// The cache contains neither the image nor an older one for the same key.
    case refused(Refusal)

    /// The reason why the cache refused an image.
    public enum Refusal: Sendable, Hashable, CustomStringConvertible {
        /// The image alone costs more than the limit of the whole cache.
        case costOverLimit(cost: Int, limit: Int)
        /// The limit on the number of entries is zero or less.
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

/// The life of an entry, in seconds since the reference date.
struct EntryLife: Sendable {
    /// The end of the life, unless a read extends it; infinity for never.
    private(set) var end: Double
    /// The time for which a read extends the life; infinity if reads do not extend it.
    private let renewal: Double
    /// The end that no read extends.
    private let lastEnd: Double

    /// A life without an end.
    static let endless = EntryLife(start: 0, lifetime: nil, expiry: nil, isExtendedOnRead: false)

    /// Creates a life.
    ///
    /// - Parameters:
    ///   - start: The current time.
    ///   - lifetime: The seconds from `start`, or from the last read.
    ///   - expiry: The latest end.
    ///   - isExtendedOnRead: Whether a read restarts the lifetime.
    init(start: Double, lifetime: Double?, expiry: Double?, isExtendedOnRead: Bool) {
        self.lastEnd = expiry ?? .infinity
        self.end = min(self.lastEnd, lifetime.map { start + $0 } ?? .infinity)
        self.renewal = isExtendedOnRead ? lifetime ?? .infinity : .infinity
    }

    /// Whether the life never ends, so that a look-up need not read the clock.
    var isEndless: Bool { self.end == .infinity }

    /// Returns whether the life is over at `time`.
    func isOver(at time: Double) -> Bool {
        self.end <= time
    }

    /// Whether a read extends the life.
    var isExtendedOnRead: Bool { self.renewal < .infinity }

    /// Extends the life after a read at `time`.
    mutating func extend(at time: Double) {
        guard self.isExtendedOnRead else { return }
        self.end = min(self.lastEnd, max(self.end, time + self.renewal))
    }
}
