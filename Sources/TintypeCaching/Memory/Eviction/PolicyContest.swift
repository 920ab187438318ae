// SPDX-License-Identifier: Apache-2.0

/// Chooses which of several policies to follow, by the hits that each would have had.
///
/// LRU leads at first. Another policy takes the lead only if its hits exceed the hits of LRU by a clear margin. The
/// margin is three times the difference that chance would cause, or twice while the cache has more hits than LRU would
/// have had. A leader that falls behind LRU loses the lead at once. So the cache is never worse than LRU by more than a
/// few misses. Among the other policies the lead changes only for a fifth more, because a change costs the entries that
/// only the new leader would hold.
struct PolicyContest: Sendable {
    private struct Score {
        /// The hits that only this policy had, minus the hits that only LRU had.
        var lead = 0.0
        /// The number of requests for which only one of the two had a hit.
        var differences = 0.0
    }

    /// The policy to follow, where 0 is LRU.
    private(set) var leader = 0
    private var scores: [Score]
    /// The hits of the cache minus the hits that LRU would have had.
    private var savings = 0
    private var untilDecay = 0

    init(policyCount: Int) {
        self.scores = [Score](repeating: Score(), count: policyCount)
    }

    /// Records a request.
    ///
    /// - Parameters:
    ///   - hits: The policies that held the entry, one bit each; bit 0 is LRU.
    ///   - wasHit: Whether the cache itself held the entry.
    ///   - entryCount: The number of entries in the cache, which sets the speed of decay.
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

    /// Halves the scores gradually over 8 requests per entry, and over at least 1,000 requests.
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
