public import FoundationEssentials

/// What decides whether a stored response may be reused: RFC 9111 (4.2), RFC 5861 and RFC 8246, as numbers.
public struct Freshness: Sendable, Hashable {
    /// What the response forbids or permits; more may be added.
    public struct Flags: OptionSet, Sendable, Hashable {
        /// One bit for each flag.
        public let rawValue: UInt8

        /// Creates flags from their bits.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// `no-cache` for the whole response: never reused without asking the origin.
        public static let noCache = Flags(rawValue: 1)
        /// `must-revalidate` and its like: never reused when stale.
        public static let mustRevalidate = Flags(rawValue: 2)
        /// `immutable`: while it is fresh, asking the origin is pointless.
        public static let immutable = Flags(rawValue: 4)
        /// `Vary: *`: no request is known to select it.
        public static let variesOnEverything = Flags(rawValue: 8)
        /// `no-store`: not kept, unless the response says otherwise.
        public static let noStore = Flags(rawValue: 16)
    }

    /// When the response was made, as far as its age tells: its age is the time since then.
    public var birth: Date
    /// For how many seconds of age it is fresh; 0 where nothing valid was said.
    public var lifetime: Double
    /// For how many seconds after that it may be served while the origin is asked.
    public var staleWhileRevalidate: Double
    /// For how many seconds after that it may be served when the origin fails.
    public var staleIfError: Double
    /// What the response forbids or permits.
    public var flags: Flags

    /// Creates a freshness; without any more said, the response is stale from the start.
    public init(
        birth: Date,
        lifetime: Double = 0,
        staleWhileRevalidate: Double = 0,
        staleIfError: Double = 0,
        flags: Flags = []
    ) {
        self.birth = birth
        self.lifetime = lifetime
        self.staleWhileRevalidate = staleWhileRevalidate
        self.staleIfError = staleIfError
        self.flags = flags
    }

    /// The `current_age` of RFC 9111 (4.2.3), in seconds; never negative.
    public func age(at date: Date) -> Double {
        max(0, date.timeIntervalSince(self.birth))
    }

    /// Whether the age is under the lifetime.
    public func isFresh(at date: Date) -> Bool {
        self.lifetime > self.age(at: date)
    }

    /// The seconds since it became stale; negative while it is fresh.
    public func staleness(at date: Date) -> Double {
        self.age(at: date) - self.lifetime
    }
}
