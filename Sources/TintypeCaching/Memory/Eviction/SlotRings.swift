/// Some orders of slots, oldest to newest, as doubly linked rings in one array.
///
/// Slots are small integers that the owner hands out. A slot is in one ring or in none. Every
/// operation takes constant time and allocates nothing, except for the growth of the array.
package struct SlotRings: Sendable {
    private struct Link {
        var older: Int32
        var newer: Int32

        /// Of a slot that is in no ring.
        static let none = Link(older: -1, newer: -1)
    }

    /// The first links close the rings: `newer` is the oldest slot and `older` the newest.
    ///
    /// The link of slot `n` is `links[n + count]`.
    private var links: [Link]
    /// The number of rings.
    private let count: Int

    /// Makes `count` empty rings.
    package init(count: Int) {
        self.count = count
        self.links = (0..<count).map { Link(older: Int32($0), newer: Int32($0)) }
    }

    /// The slot that was put into `ring` longest ago, or `nil` when it is empty.
    package func oldest(of ring: Int = 0) -> Int? {
        self.slot(self.links[ring].newer)
    }

    /// The slot that was put in next after `slot`, or `nil` when `slot` is the newest of its ring.
    package func newer(than slot: Int) -> Int? {
        self.slot(self.links[slot + self.count].newer)
    }

    /// Whether `slot` is in a ring.
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

    /// Takes `slot` out of its ring.
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

/// A value for each slot; slots that were never set have the default.
package struct SlotTable<Value: Sendable>: Sendable {
    private var values: [Value] = []
    private let initial: Value

    /// Makes a table in which every slot has `initial`.
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
