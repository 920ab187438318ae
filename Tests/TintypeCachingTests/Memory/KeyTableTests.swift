// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.computing) struct KeyTableTests {
    @Test func `behaves like a dictionary through many operations`() {
        let keys = (0..<300).map { CacheKey("\($0)") }
        var table = KeyTable()
        var model: [CacheKey: Int] = [:]
        var free = Array(0..<keys.count)
        var random = SeededGenerator(seed: 3)
        for step in 0..<50_000 {
            let key = keys[Int(random.next() % UInt64(keys.count))]
            if let slot = model[key] {
                // The table shrinks and grows in turns.
                guard random.next() % 4 < (step / 5_000 % 2 == 0 ? 1 : 3) else { continue }
                table.remove(slot)
                model[key] = nil
                free.append(slot)
            } else if let slot = free.popLast() {
                table.insert(key, slot: slot)
                model[key] = slot
            }
            guard step % 500 == 0 else { continue }
            for key in keys { #expect(table.slot(of: key) == model[key]) }
            #expect(table.count == model.count)
        }
        #expect(table.slot(of: CacheKey("299")) == model[keys[299]])
    }
}
