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
