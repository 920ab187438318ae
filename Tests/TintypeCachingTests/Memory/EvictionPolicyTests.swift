// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.computing) struct EvictionPolicyTests {
    @Test func `before anything is known it drops the least recently used`() {
        var cache = PolicyCache(capacity: 3)
        for key in [1, 2, 3, 1, 4] { cache.request(key) }
        #expect(cache.keys == [1, 3, 4])
        for key in [3, 5, 1] { cache.request(key) }
        #expect(cache.keys == [1, 3, 5])
    }

    @Test func `a loop that is too large for LRU is held in part`() {
        var (cache, lru) = (PolicyCache(capacity: 80), PolicySimulation<LRUPolicy>(capacity: 80))
        var (hits, lruHits) = (0, 0)
        for step in 0..<20_000 {
            if cache.request(step % 100) { hits += 1 }
            if lru.request(step % 100) { lruHits += 1 }
        }
        #expect(lruHits == 0)
        // The optimal policy would have 79 hits of 100.
        #expect(hits > 20_000 * 7 / 10)
    }

    /// The policy fills its main queue before it evicts, as in libCacheSim, and a loop does not change the queue.
    @Test func `S3-FIFO holds the start of a loop`() {
        var cache = PolicySimulation<S3FIFOPolicy>(capacity: 100)
        let hits = (0..<5_000).count { cache.request($0 % 500) }
        #expect(hits == 9 * 90)
    }

    @Test func `a scan does not drive out what is popular`() {
        var (cache, lru) = (PolicyCache(capacity: 50), PolicySimulation<LRUPolicy>(capacity: 50))
        var random = SeededGenerator(seed: 5)
        var (hits, lruHits) = (0, 0)
        for step in 0..<60_000 {
            let key = step % 2 == 0 ? Int(random.next() % 40) : 1_000 + step
            if cache.request(key) { hits += 1 }
            if lru.request(key) { lruHits += 1 }
        }
        #expect(Double(hits) > 1.3 * Double(lruHits))
    }

    @Test(arguments: [3, 10, 100, 500])
    func `on loads that LRU fits it is as good as LRU`(capacity: Int) {
        var (cache, lru) = (PolicyCache(capacity: capacity), PolicySimulation<LRUPolicy>(capacity: capacity))
        var random = SeededGenerator(seed: 7)
        var stack = Array(0..<1_000)
        var (hits, lruHits) = (0, 0)
        for _ in 0..<20_000 {
            // Recently requested keys are requested again.
            let depth = Int(random.next() % 1_000) * Int(random.next() % 1_000) * Int(random.next() % 1_000) / 1_000_000
            let key = stack.remove(at: depth)
            stack.insert(key, at: 0)
            if cache.request(key) { hits += 1 }
            if lru.request(key) { lruHits += 1 }
        }
        #expect(hits >= lruHits - lruHits / 500 - 2)
    }

    @Test(arguments: [1, 2, 3, 7, 50])
    func `it never holds more than its capacity and keeps the newest`(capacity: Int) {
        var cache = PolicyCache(capacity: capacity)
        var random = SeededGenerator(seed: UInt64(capacity))
        for step in 0..<20_000 {
            let key = Int(random.next() % 120)
            switch random.next() % 16 {
            case 0: cache.remove(key)
            case 1: cache.expire(key)
            default:
                let weight = key % min(capacity, 5) + 1
                cache.request(key, weight: weight)
                #expect(cache.keys.contains(key), "step \(step)")
            }
            #expect(cache.weight <= capacity)
            #expect(cache.weight == cache.weightOfAll)
        }
    }

    @Test func `the order by age is that of the last uses`() {
        var cache = PolicyCache(capacity: 60)
        var random = SeededGenerator(seed: 11)
        var lastUse: [Int: Int] = [:]
        for step in 0..<30_000 {
            // A loop among random keys makes the leading policy change, so the cache differs from LRU.
            let key = step % 3 == 0 ? 500 + step / 3 % 70 : Int(random.next() % 100)
            cache.request(key)
            lastUse[key] = step
            guard step % 100 == 0 else { continue }
            let order = cache.keysByAge
            #expect(Set(order) == cache.keys)
            #expect(order == order.sorted { lastUse[$0, default: 0] < lastUse[$1, default: 0] })
        }
    }

    @Test func `what no policy remembers takes no room`() {
        var policy = EvictionPolicy(capacity: 10)
        var highest = 0
        var last: [Int] = []
        for hash in 0..<10_000 {
            last.append(policy.insert(hash: UInt64(hash) &* 0x9E37_79B9_7F4A_7C15, weight: 1))
            if last.count > 10, let victim = policy.victim(sparing: last[last.count - 1]) { policy.evict(victim) }
            highest = max(highest, last[last.count - 1])
        }
        // The bound covers the ghosts of two policies and four caches of 10.
        #expect(highest < 100)
    }
}
