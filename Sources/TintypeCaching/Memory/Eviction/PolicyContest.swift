/// Decides which of several policies to follow, by what each would have hit.
///
/// LRU leads from the start, and another takes the lead only when it hit more than LRU by a clear margin:
/// three times what chance would give, or twice, while the cache is ahead of LRU and has something to
/// lose. A leader that falls behind LRU loses the lead at once. So the cache is never worse than LRU by
/// more than a few misses. Among the others the lead changes only for a fifth more: each change costs the
/// entries that only the new leader would hold.
struct PolicyContest: Sendable {
    private struct Score {
        /// The hits that LRU did not have, less those that only LRU had.
        var lead = 0.0
        /// The requests at which the two differed.
        var differences = 0.0
    }

    /// The policy to follow; 0 is LRU.
    private(set) var leader = 0
    private var scores: [Score]
    /// The hits of the cache itself beyond those that LRU would have had.
    private var savings = 0
    private var untilDecay = 0

    init(policyCount: Int) {
        self.scores = [Score](repeating: Score(), count: policyCount)
    }

    /// Counts a request; the sets have a bit for each policy that held the entry.
    ///
    /// - Parameters:
    ///   - hits: The policies that held the entry; bit 0 is LRU.
    ///   - wasHit: Whether the cache itself held it.
    ///   - entryCount: The entries in the cache; it says how long the past counts.
    mutating func didRequest(hits: UInt, wasHit: Bool, entryCount: Int) {
        self.untilDecay -= 1
        if self.untilDecay < 0 { self.decay(entryCount) }
        let all: UInt = 1 << UInt(self.scores.count) - 1
        if wasHit ? hits == all : hits == 0 { return }
        let lruHit = hits & 1 == 1
        self.savings = min(self.savings + (wasHit ? 1 : 0) - (lruHit ? 1 : 0), entryCount)
        for policy in 1..<self.scores.count where (hits >> UInt(policy) & 1 == 1) != lruHit {
            self.scores[policy].lead += lruHit ? -1 : 1
            self.scores[policy].differences += 1
        }
        self.choose()
    }

    private mutating func choose() {
        var best = 0
        for policy in 1..<self.scores.count where self.scores[policy].lead > self.scores[best].lead { best = policy }
        guard best != self.leader else { return }
        let (challenger, champion) = (self.scores[best], self.scores[self.leader])
        let chance = max(challenger.differences, champion.differences).squareRoot()
        let caution: Double = self.savings <= 0 ? 3 : best == 0 || self.leader == 0 ? 2 : 1
        let margin = max(1, caution * chance, champion.lead / 5)
        if challenger.lead - champion.lead > margin || best == 0 && champion.lead < 0 { self.leader = best }
    }

    /// Forgets half of the past in eight times as many requests as there are entries, but in no fewer than 1,000.
    private mutating func decay(_ entryCount: Int) {
        self.untilDecay = max(8 * entryCount, 1_000) / 16
        for policy in self.scores.indices {
            self.scores[policy].lead *= Self.sixteenthOfHalf
            self.scores[policy].differences *= Self.sixteenthOfHalf
        }
    }

    /// The sixteenth root of a half.
    private static let sixteenthOfHalf = 0.957_603_280_698_573_6
}
