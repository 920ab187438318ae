// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.computing) struct SlotRingsTests {
    @Test func `empty ring has no oldest`() {
        let rings = SlotRings(count: 2)
        #expect(rings.oldest(of: 0) == nil)
        #expect(rings.oldest(of: 1) == nil)
        #expect(!rings.contains(7))
    }

    @Test func `behaves like arrays through many operations`() {
        var rings = SlotRings(count: 2)
        var model: [[Int]] = [[], []]
        var random = SeededGenerator(seed: 42)
        for _ in 0..<20_000 {
            let slot = Int(random.next() % 20)
            let target = Int(random.next() % 2)
            let ring = model.firstIndex { $0.contains(slot) }
            #expect(rings.contains(slot) == (ring != nil))
            if let ring { model[ring].removeAll { $0 == slot } }
            switch (ring, random.next() % 4) {
            case (nil, _):
                rings.append(slot, to: target)
                model[target].append(slot)
            case (_?, 0):
                rings.remove(slot)
            case (_?, 1):
                rings.moveToOldest(slot, of: target)
                model[target].insert(slot, at: 0)
            case (_?, _):
                rings.moveToNewest(slot, of: target)
                model[target].append(slot)
            }
            #expect(self.slots(of: rings, 0) == model[0])
            #expect(self.slots(of: rings, 1) == model[1])
        }
    }

    private func slots(of rings: SlotRings, _ ring: Int) -> [Int] {
        var slots: [Int] = []
        var next = rings.oldest(of: ring)
        while let slot = next {
            slots.append(slot)
            next = rings.newer(than: slot)
        }
        return slots
    }
}
