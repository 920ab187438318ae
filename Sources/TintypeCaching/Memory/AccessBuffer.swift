/// The look-ups of one stripe that the policy has not heard of yet.
///
/// Writing one down is all that a hit costs beside the look-up itself; the policy learns of many at once,
/// in their order, before it next has to choose. When nobody has time to tell it, further ones are lost:
/// then there are so many of them that a part says enough.
struct AccessBuffer: Sendable {
    /// A look-up that found an entry.
    struct Access: Sendable {
        /// When it was, in ticks of the processor's clock.
        let ticks: UInt64
        /// The hash of the key: the slot may have another entry by now.
        let hash: UInt64
        let slot: Int32
    }

    private static let capacity = 256
    private static let portion = 64

    private(set) var hits = 0
    private(set) var misses = 0
    private var accesses: [Access] = {
        var accesses: [Access] = []
        accesses.reserveCapacity(capacity)
        return accesses
    }()

    /// Notes a hit; says whether it is time to tell the policy.
    mutating func didHit(_ access: Access) -> Bool {
        self.hits &+= 1
        if self.accesses.count < Self.capacity { self.accesses.append(access) }
        // A full buffer asks again only now and then.
        return self.accesses.count < Self.capacity
            ? self.accesses.count % Self.portion == 0 : self.hits % Self.portion == 0
    }

    /// Notes a look-up that found nothing.
    mutating func didMiss() {
        self.misses &+= 1
    }

    /// Moves the look-ups to the end of `others`.
    mutating func drain(into others: inout [Access]) {
        others.append(contentsOf: self.accesses)
        self.accesses.removeAll(keepingCapacity: true)
    }
}
