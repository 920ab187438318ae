/// The limits of a memory tier, and how heavy an entry is under them.
struct MemoryLimits: Sendable {
    let cost: Int
    let count: Int?

    /// The entries that the cache holds at most.
    ///
    /// Even without a limit there are no more than one for each 512 bytes of the cost limit, which is about
    /// what an entry takes beside its pixels: many tiny pictures must not fill the memory uncounted. A small
    /// cache may hold 1,024 of them all the same.
    private var countBound: Int { min(self.count ?? .max, max(self.cost / 512, 1_024)) }

    /// Whether so much fits.
    func admits(cost: Int, count: Int) -> Bool {
        cost <= self.cost && count <= self.countBound
    }

    /// The most that ``weight(ofCost:)`` of all entries may come to.
    ///
    /// Low enough that sums of a few can't overflow.
    var capacity: Int { min(max(self.cost, 1), 1 << 60) }

    /// What an entry weighs for the policy, which knows one limit only: the larger of its two shares.
    func weight(ofCost cost: Int) -> Int {
        max(cost, self.capacity / max(self.countBound, 1), 1)
    }

    /// Why an entry can't be held at all, if it can't.
    func refusal(ofCost cost: Int) -> InsertOutcome.Refusal? {
        if let count = self.count, count <= 0 { return .countLimitIsZero }
        guard cost > self.cost else { return nil }
        return .costOverLimit(cost: cost, limit: self.cost)
    }
}
