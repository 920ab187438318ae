// SPDX-License-Identifier: Apache-2.0

import TintypeCaching

/// A cache of integers that tracks only its keys.
protocol SimulatedCache {
    init(capacity: Int)

    /// Requests `key`, stores it if it is missing, and returns whether it was a hit.
    mutating func request(_ key: Int, weight: Int) -> Bool
}

extension SimulatedCache {
    /// Replays a trace with a cache of this kind and of a capacity, and returns the hit ratio.
    static func replay(_ trace: CacheTrace, capacity: Int) -> HitRatio {
        var cache = Self(capacity: capacity)
        var ratio = HitRatio()
        for key in trace.keys {
            let weight = trace.weights[key]
            ratio.count(cache.request(key, weight: weight), weight: weight)
        }
        return ratio
    }
}

/// The share of requests, and of requested bytes, that a cache could answer.
struct HitRatio: Sendable {
    private var requests = 0
    private var hits = 0
    private var weight = 0
    private var hitWeight = 0

    /// Counts a request.
    mutating func count(_ wasHit: Bool, weight: Int) {
        self.requests += 1
        self.weight += weight
        guard wasHit else { return }
        self.hits += 1
        self.hitWeight += weight
    }

    /// By requests.
    var byCount: Double { Double(self.hits) / Double(self.requests) }
    /// By bytes.
    var byWeight: Double { Double(self.hitWeight) / Double(self.weight) }
}

/// A replacement policy on its own.
struct PolicyAlone<Policy: SimulatedPolicy>: SimulatedCache {
    private var policy: Policy
    private var lost: [Int32] = []

    init(capacity: Int) {
        self.policy = Policy(capacity: capacity)
    }

    mutating func request(_ key: Int, weight: Int) -> Bool {
        self.lost.removeAll(keepingCapacity: true)
        return self.policy.request(key, hash: KeyHash.of(key), weight: weight, lost: &self.lost)
    }
}

/// The policy of Tintype's memory tier, driven as the tier drives it.
struct TintypePolicy: SimulatedCache {
    private let capacity: Int
    private var policy: EvictionPolicy
    private var weight = 0
    private var slots = SlotTable(-1)
    private var keys = SlotTable(-1)
    private var weights = SlotTable(0)

    init(capacity: Int) {
        self.capacity = capacity
        self.policy = EvictionPolicy(capacity: capacity)
    }

    mutating func request(_ key: Int, weight: Int) -> Bool {
        guard self.slots[key] < 0 else {
            self.policy.use(self.slots[key])
            return true
        }
        guard weight <= self.capacity else { return false }
        let slot = self.policy.insert(hash: KeyHash.of(key), weight: weight)
        self.slots[key] = slot
        self.keys[slot] = key
        self.weights[slot] = weight
        self.weight += weight
        while self.weight > self.capacity, let victim = self.policy.victim(sparing: slot) {
            self.policy.evict(victim)
            self.slots[self.keys[victim]] = -1
            self.weight -= self.weights[victim]
        }
        return false
    }
}

/// A hash that spreads small integers (the finish of SplitMix64).
enum KeyHash {
    static func of(_ key: Int) -> UInt64 {
        var value = UInt64(truncatingIfNeeded: key) &+ 0x9E37_79B9_7F4A_7C15
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}
