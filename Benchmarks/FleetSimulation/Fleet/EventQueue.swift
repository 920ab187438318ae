// SPDX-License-Identifier: Apache-2.0

/// Something that happens in a fleet at a certain time.
struct Event: Equatable, Sendable {
    enum Kind: UInt8, Sendable {
        /// The shared tier answers a look-up.
        case lookUpEnds
        /// The shared tier answers a request for a lock.
        case lockAnswers
        /// A node waited for the lock of another for the longest time.
        case waitEnds
        /// The origin's body is complete.
        case originEnds
        /// A result is made.
        case renderEnds
        /// An item arrives in the shared tier, and the lock is released.
        case storeEnds
        /// The lease of a lock ends whose owner is lost.
        case leaseEnds
        /// A node is lost.
        case nodeStops
        /// A lost node comes back with empty caches.
        case nodeStarts
    }

    let time: Double
    let kind: Kind
    let node: Int
    /// The start of the node that the event belongs to.
    ///
    /// A node that is lost forgets its events.
    let generation: Int
    var item = 0
    /// The expiry of an item that is stored.
    var expiry = 0.0
    /// The number of a flight or lock.
    var serial = 0
}

/// Events in the order of their times.
///
/// Events of equal times keep the order in which they were added.
struct EventQueue: Sendable {
    private var heap: [(event: Event, order: Int)] = []
    private var added = 0

    var nextTime: Double? { self.heap.first?.event.time }

    mutating func add(_ event: Event) {
        self.heap.append((event, self.added))
        self.added += 1
        var child = self.heap.count - 1
        while child > 0, self.comes(child, before: (child - 1) / 2) {
            self.heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func removeFirst() -> Event? {
        guard let last = self.heap.popLast() else { return nil }
        guard let first = self.heap.first else { return last.event }
        self.heap[0] = last
        var parent = 0
        while true {
            var earliest = parent
            let child = 2 * parent + 1
            if child < self.heap.count, self.comes(child, before: earliest) { earliest = child }
            if child + 1 < self.heap.count, self.comes(child + 1, before: earliest) { earliest = child + 1 }
            guard earliest != parent else { return first.event }
            self.heap.swapAt(parent, earliest)
            parent = earliest
        }
    }

    private func comes(_ index: Int, before other: Int) -> Bool {
        let (left, right) = (self.heap[index], self.heap[other])
        return (left.event.time, left.order) < (right.event.time, right.order)
    }
}
