import FoundationEssentials

/// When the time of an entry on disk is over.
struct EntryExpiry: Sendable {
    /// The age from which on an entry is a miss, in seconds.
    let maximumAge: Double
    /// What the age counts from.
    let start: DiskCache.Expiry
    private let clock: @Sendable () -> Date

    init(_ configuration: DiskCache.Configuration) {
        let age = configuration.maximumAge?.components
        self.maximumAge = age.map { Double($0.seconds) + Double($0.attoseconds) / 1e18 } ?? .infinity
        self.start = configuration.expiry
        self.clock = configuration.now
    }

    /// The time in seconds since 1970.
    var now: Double { self.clock().timeIntervalSince1970 }

    /// Whether an entry's time is over.
    func isOver(_ header: EntryHeader, usedAt: Double, now: Double) -> Bool {
        if header.expiresAt <= now { return true }
        let start =
            switch self.start {
            case .access: usedAt
            case .modification: header.storedAt
            case .creation: header.createdAt
            }
        return now - start >= self.maximumAge
    }

    /// Whether an entry's time may be over, as far as the catalogue knows; the header knows better.
    func mayBeOver(_ record: CatalogueRecord, now: Double) -> Bool {
        if record.deadline != 0, Double(record.deadline) <= now + 1 { return true }
        return switch self.start {
        case .access: now - record.usedAtSeconds >= self.maximumAge
        // Whole seconds.
        case .modification: now - Double(record.storedAt) >= self.maximumAge
        case .creation: self.maximumAge < .infinity
        }
    }
}
