/// Decides which entry of the memory tier goes first: today the least recently used.
///
/// The tier tells it what happens to its slots and asks it for a victim. Nothing else in the
/// tier knows the policy, so that another can take its place.
struct EvictionPolicy: Sendable {
    private var order = RecencyList()

    /// An entry was put into `slot`.
    mutating func didInsert(_ slot: Int) {
        self.order.append(slot)
    }

    /// The entry in `slot` was read or replaced.
    mutating func didUse(_ slot: Int) {
        self.order.moveToNewest(slot)
    }

    /// The entry in `slot` is gone.
    mutating func didRemove(_ slot: Int) {
        self.order.remove(slot)
    }

    /// All entries are gone.
    mutating func didRemoveAll() {
        self.order.removeAll()
    }

    /// The slot whose entry goes next, or `nil` when there is none.
    func victim() -> Int? {
        self.order.oldest
    }
}
