/// Which entries a cache of a given capacity would hold: a policy without the entries themselves.
///
/// Entries are slots, small integers that the owner hands out, with a weight each. A policy learns of
/// each request and says what it would have dropped. That is all a simulation needs, and all that
/// ``EvictionPolicy`` needs to follow the best of several.
package protocol ReplacementPolicy: Sendable {
    /// Makes an empty cache whose entries may weigh `capacity` together.
    init(capacity: Int)

    /// Asks for `slot`, and takes it in when it is not held.
    ///
    /// - Parameters:
    ///   - slot: The entry.
    ///   - hash: A good hash of the key, always the same for the slot.
    ///   - weight: The weight, always the same while the slot is remembered.
    ///   - lost: Gets the slots that are no longer held or no longer remembered.
    /// - Returns: Whether it was held.
    mutating func request(_ slot: Int, hash: UInt64, weight: Int, lost: inout [Int32]) -> Bool

    /// Whether `slot` is in the cache.
    func holds(_ slot: Int) -> Bool

    /// Whether `slot` is in the cache, or was there and still matters to later choices.
    func remembers(_ slot: Int) -> Bool

    /// Takes `slot` out, as if it had never been asked for.
    mutating func forget(_ slot: Int)
}
