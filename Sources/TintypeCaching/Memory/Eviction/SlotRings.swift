// SPDX-License-Identifier: Apache-2.0

/// Several orders of slots, from oldest to newest, as doubly linked rings in one array.
///
/// Slots are small integers that the owner assigns. A slot is in at most one ring. Every operation takes constant time
/// and does not allocate, except when the array grows.
package struct SlotRings: Sendable {
    private struct Link {
        var older: Int32
        var newer: Int32

        /// The link of a slot that is in no ring.
        static let none = Link(older: -1, newer: -1)
    }

    /// The links of the rings, followed by the links of the slots.
    ///
    /// The link of ring `r` is `links[r]`: `newer` is its oldest slot and `older` its newest. The link of slot `n` is
    /// `links[n + count]`.
    private var links: [Link]
    /// The number of rings.
    private let count: Int

    /// Creates `count` empty rings.
    package init(count: Int) {
        self.count = count
        self.links = (0..<count).map { Link(older: Int32($0), newer: Int32($0)) }
    }

    /// Returns the oldest slot of `ring`, or `nil` if it is empty.
    package func oldest(of ring: Int = 0) -> Int? {
        self.slot(self.links[ring].newer)
    }

    /// Returns the next newer slot after `slot`, or `nil` if `slot` is the newest of its ring.
    package func newer(than slot: Int) -> Int? {
        self.slot(self.links[slot + self.count].newer)
    }

    /// Returns whether `slot` is in a ring.
    package func contains(_ slot: Int) -> Bool {
        slot + self.count < self.links.count && self.links[slot + self.count].older >= 0
    }

    /// Adds `slot`, which is in no ring, as the newest of `ring`.
    package mutating func append(_ slot: Int, to ring: Int = 0) {
        let own = self.room(for: slot)
        let newest = self.links[ring].older
        self.links[Int(own)] = Link(older: newest, newer: Int32(ring))
        self.links[Int(newest)].newer = own
        self.links[ring].older = own
    }

    /// Makes `slot`, which is in one of the rings, the oldest of `ring`.
    package mutating func moveToOldest(_ slot: Int, of ring: Int = 0) {
        self.remove(slot)
        let own = Int32(slot + self.count)
        let oldest = self.links[ring].newer
        self.links[Int(own)] = Link(older: Int32(ring), newer: oldest)
        self.links[Int(oldest)].older = own
        self.links[ring].newer = own
    }

    /// Makes `slot`, which is in one of the rings, the newest of `ring`.
    package mutating func moveToNewest(_ slot: Int, of ring: Int = 0) {
        let own = slot + self.count
        let newest = self.links[ring].older
        guard newest != Int32(own) else { return }
        let link = self.links[own]
        self.links[Int(link.older)].newer = link.newer
        self.links[Int(link.newer)].older = link.older
        self.links[own] = Link(older: newest, newer: Int32(ring))
        self.links[Int(newest)].newer = Int32(own)
        self.links[ring].older = Int32(own)
    }

    /// Removes `slot` from its ring.
    package mutating func remove(_ slot: Int) {
        let link = self.links[slot + self.count]
        self.links[Int(link.older)].newer = link.newer
        self.links[Int(link.newer)].older = link.older
        self.links[slot + self.count] = .none
    }

    private func slot(_ link: Int32) -> Int? {
        Int(link) < self.count ? nil : Int(link) - self.count
    }

    private mutating func room(for slot: Int) -> Int32 {
        while self.links.count <= slot + self.count { self.links.append(.none) }
        return Int32(slot + self.count)
    }
}

/// A value for each slot, with a default for slots that were never set.
package struct SlotTable<Value: Sendable>: Sendable {
    private var values: [Value] = []
    private let initial: Value

    /// Creates a table in which every slot has `initial`.
    package init(_ initial: Value) {
        self.initial = initial
    }

    /// The value of `slot`.
    package subscript(slot: Int) -> Value {
        get { slot < self.values.count ? self.values[slot] : self.initial }
        set {
            while self.values.count <= slot { self.values.append(self.initial) }
            self.values[slot] = newValue
        }
    }
}
