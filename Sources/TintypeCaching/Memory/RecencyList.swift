/// The order in which slots were last used, as a doubly linked list in one array.
///
/// Slots are small integers that the owner hands out. Every operation takes constant time
/// and allocates nothing, except for the growth of the array.
struct RecencyList: Sendable {
    private struct Link {
        var older: Int32
        var newer: Int32
    }

    /// `links[0]` closes the ring: its `newer` is the oldest slot and its `older` the newest.
    ///
    /// The link of slot `n` is `links[n + 1]`.
    private var links = [Link(older: 0, newer: 0)]

    /// The slot that was used longest ago, or `nil` when there is none.
    var oldest: Int? {
        let first = self.links[0].newer
        return first == 0 ? nil : Int(first) - 1
    }

    /// The slot that was used next after `slot`, or `nil` when `slot` is the newest.
    func newer(than slot: Int) -> Int? {
        let next = self.links[slot + 1].newer
        return next == 0 ? nil : Int(next) - 1
    }

    /// Adds `slot`, which is not in the list, as the newest.
    mutating func append(_ slot: Int) {
        while self.links.count < slot + 2 { self.links.append(Link(older: 0, newer: 0)) }
        self.link(Int32(slot + 1))
    }

    /// Makes `slot`, which is in the list, the newest.
    mutating func moveToNewest(_ slot: Int) {
        let own = Int32(slot + 1)
        guard self.links[0].older != own else { return }
        self.unlink(own)
        self.link(own)
    }

    /// Takes `slot` out of the list.
    mutating func remove(_ slot: Int) {
        self.unlink(Int32(slot + 1))
    }

    /// Forgets all slots.
    mutating func removeAll() {
        self.links = [Link(older: 0, newer: 0)]
    }

    private mutating func link(_ own: Int32) {
        let newest = self.links[0].older
        self.links[Int(own)] = Link(older: newest, newer: 0)
        self.links[Int(newest)].newer = own
        self.links[0].older = own
    }

    private mutating func unlink(_ own: Int32) {
        let link = self.links[Int(own)]
        self.links[Int(link.older)].newer = link.newer
        self.links[Int(link.newer)].older = link.older
    }
}
