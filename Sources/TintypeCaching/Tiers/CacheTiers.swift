// SPDX-License-Identifier: Apache-2.0

/// A choice of cache tiers.
public struct CacheTiers: OptionSet, Sendable, Hashable {
    /// One bit for each tier.
    public let rawValue: UInt8

    /// Creates a choice from its bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The decoded images in memory.
    public static let memory = CacheTiers(rawValue: 1)
    /// The encoded bytes on disk, and in all other byte tiers.
    public static let disk = CacheTiers(rawValue: 2)
    /// No tier.
    public static let none: CacheTiers = []
    /// All tiers.
    public static let all: CacheTiers = [.memory, .disk]
}

extension CacheTiers: CustomStringConvertible {
    /// The names of the tiers, such as `memory, disk`; `none` for no tier.
    public var description: String {
        let names = [(CacheTiers.memory, "memory"), (.disk, "disk")].filter { self.contains($0.0) }.map(\.1)
        return names.isEmpty ? "none" : names.joined(separator: ", ")
    }
}
