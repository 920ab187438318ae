/// A choice of cache tiers.
public struct CacheTiers: OptionSet, Sendable, Hashable {
    /// One bit for each tier.
    public let rawValue: UInt8

    /// Creates a choice from its bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The decoded pictures in memory.
    public static let memory = CacheTiers(rawValue: 1)
    /// The encoded bytes on disk.
    public static let disk = CacheTiers(rawValue: 2)
    /// No tier.
    public static let none: CacheTiers = []
    /// Both tiers.
    public static let all: CacheTiers = [.memory, .disk]
}
