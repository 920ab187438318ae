/// How the memory tier may answer a request: one bit, which a hit compares with those that its loader trusts.
struct MemoryUse: OptionSet, Sendable {
    let rawValue: UInt8

    /// Whatever its age.
    static let trusted = MemoryUse(rawValue: 1)
    /// As the loader's own policy says.
    static let byDefault = MemoryUse(rawValue: 2)
    /// Once its entry was found to be good.
    static let checked = MemoryUse(rawValue: 4)
}
