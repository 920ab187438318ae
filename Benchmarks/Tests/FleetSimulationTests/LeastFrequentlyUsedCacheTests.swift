// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FleetSimulation

@Suite struct LeastFrequentlyUsedCacheTests {
    @Test func `items that are used often stay when many others pass through`() {
        var cache = LeastFrequentlyUsedCache(capacity: 1_000, seed: 1)
        for item in 0..<20 {
            cache.store(item, bytes: 10, expiry: .infinity, at: 0)
            for _ in 0..<1_000 { _ = cache.expiry(of: item, at: 0) }
        }
        for item in 100..<5_000 { cache.store(item, bytes: 10, expiry: .infinity, at: 0) }
        let stayed = (0..<20).count { cache.expiry(of: $0, at: 0) != nil }
        // A sample of five may consist of such items only, at one of 3,000 evictions.
        #expect(stayed >= 15)
        #expect(cache.bytes == 1_000)
        #expect(cache.count == 100)
        #expect(cache.evictions == 20 + 4_900 - 100)
    }

    @Test func `items that were used often long ago leave`() {
        var cache = LeastFrequentlyUsedCache(capacity: 1_000, seed: 1)
        cache.store(0, bytes: 10, expiry: .infinity, at: 0)
        for _ in 0..<1_000 { _ = cache.expiry(of: 0, at: 0) }
        for item in 100..<5_000 { cache.store(item, bytes: 10, expiry: .infinity, at: 3_600) }
        #expect(cache.expiry(of: 0, at: 3_600) == nil)
    }

    @Test func `an entry ends at its expiry, and a store replaces it`() {
        var cache = LeastFrequentlyUsedCache(capacity: 100, seed: 1)
        cache.store(1, bytes: 10, expiry: 5, at: 0)
        cache.store(2, bytes: 20, expiry: 50, at: 0)
        cache.store(1, bytes: 30, expiry: 6, at: 0)
        #expect(cache.bytes == 50)
        #expect(cache.expiry(of: 1, at: 5) == 6)
        #expect(cache.expiry(of: 1, at: 6) == nil)
        #expect(cache.expiry(of: 2, at: 6) == 50)
        cache.store(3, bytes: 101, expiry: .infinity, at: 6)
        #expect(cache.bytes == 20)
        #expect(cache.count == 1)
    }
}
