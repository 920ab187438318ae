// SPDX-License-Identifier: Apache-2.0

/// The locks of the shared tier, one for each item that a node loads.
struct LockTable: Sendable {
    /// A start of a node, which owns a lock or waits for one.
    struct Claimant: Equatable, Sendable {
        let node: Int
        let generation: Int
    }

    private struct Lock {
        let owner: Claimant
        let serial: Int
        var waiters: [Claimant] = []
    }

    private var locks: [Int: Lock] = [:]
    private var serials = 0

    /// Gives the lock of an item to a claimant, or lets it wait for the owner.
    ///
    /// - Returns: Whether the claimant owns the lock.
    mutating func claim(_ item: Int, for claimant: Claimant) -> Bool {
        guard self.locks[item] == nil else {
            self.locks[item]?.waiters.append(claimant)
            return false
        }
        self.serials += 1
        self.locks[item] = Lock(owner: claimant, serial: self.serials)
        return true
    }

    /// Removes the lock of an item if the claimant owns it, and returns the waiters.
    mutating func release(_ item: Int, by claimant: Claimant) -> [Claimant] {
        guard let lock = self.locks[item], lock.owner == claimant else { return [] }
        self.locks[item] = nil
        return lock.waiters
    }

    /// Removes the lock with this serial if nobody has released it, and returns the waiters.
    mutating func expire(_ item: Int, serial: Int) -> [Claimant] {
        guard let lock = self.locks[item], lock.serial == serial else { return [] }
        self.locks[item] = nil
        return lock.waiters
    }

    /// The locks of an owner, in the order in which it received them.
    func locks(of owner: Claimant) -> [(item: Int, serial: Int)] {
        self.locks.filter { $0.value.owner == owner }
            .map { (item: $0.key, serial: $0.value.serial) }
            .sorted { $0.serial < $1.serial }
    }
}
