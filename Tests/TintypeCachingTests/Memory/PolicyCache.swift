// SPDX-License-Identifier: Apache-2.0

import TintypeTestSupport

@testable import TintypeCaching

/// A cache of integers with the eviction policy of the memory tier.
struct PolicyCache {
    private let capacity: Int
    private var policy: EvictionPolicy
    private var slots: [Int: Int] = [:]
    private var entries: [Int: (key: Int, weight: Int)] = [:]
    private(set) var weight = 0

    init(capacity: Int) {
        self.capacity = capacity
        self.policy = EvictionPolicy(capacity: capacity)
    }

    var keys: Set<Int> { Set(self.slots.keys) }
    var keysByAge: [Int] { self.policy.residentsByAge().compactMap { self.entries[$0]?.key } }
    var weightOfAll: Int { self.entries.values.reduce(0) { $0 + $1.weight } }

    /// Requests `key`, inserts it if it is missing, and returns whether it was a hit.
    @discardableResult
    mutating func request(_ key: Int, weight: Int = 1) -> Bool {
        if let slot = self.slots[key] {
            self.policy.use(slot)
            return true
        }
        let slot = self.policy.insert(hash: Self.hash(of: key), weight: weight)
        self.slots[key] = slot
        self.entries[slot] = (key, weight)
        self.weight += weight
        while self.weight > self.capacity, let victim = self.policy.victim(sparing: slot) {
            self.policy.evict(victim)
            self.drop(victim)
        }
        return false
    }

    mutating func remove(_ key: Int) {
        guard let slot = self.slots[key] else { return }
        self.policy.remove(slot)
        self.drop(slot)
    }

    mutating func expire(_ key: Int) {
        guard let slot = self.slots[key] else { return }
        self.policy.evict(slot)
        self.drop(slot)
    }

    private mutating func drop(_ slot: Int) {
        guard let entry = self.entries.removeValue(forKey: slot) else { return }
        self.slots[entry.key] = nil
        self.weight -= entry.weight
    }

    static func hash(of key: Int) -> UInt64 {
        var generator = SeededGenerator(seed: UInt64(truncatingIfNeeded: key))
        return generator.next()
    }
}

/// A simulation of a single policy on integers.
struct PolicySimulation<Policy: SimulatedPolicy> {
    private var policy: Policy
    private var lost: [Int32] = []

    init(capacity: Int) {
        self.policy = Policy(capacity: capacity)
    }

    mutating func request(_ key: Int, weight: Int = 1) -> Bool {
        self.lost.removeAll(keepingCapacity: true)
        return self.policy.request(key, hash: PolicyCache.hash(of: key), weight: weight, lost: &self.lost)
    }
}
