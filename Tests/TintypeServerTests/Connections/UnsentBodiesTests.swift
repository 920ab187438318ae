// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeServer

/// The bytes of bodies that clients have not taken yet.
struct UnsentBodiesTests {
    @Test func `a body counts once, from its first client to its last`() {
        let (large, small) = (Data(count: 5_000), Data(count: 300))
        let (first, other) = (BodyIdentity(large), BodyIdentity(small))
        var bodies = UnsentBodies()
        var counts: [Int] = []
        for change in [first, first, other] {
            bodies.insert(change)
            counts.append(bodies.byteCount)
        }
        for change in [first, other, first] {
            bodies.remove(change)
            counts.append(bodies.byteCount)
        }
        #expect(counts == [5_000, 5_000, 5_300, 5_300, 5_000, 0])
        withExtendedLifetime((large, small)) {}
    }

    @Test func `removing an unknown body keeps the count`() {
        let data = Data(count: 100)
        var bodies = UnsentBodies()
        bodies.remove(BodyIdentity(data))
        #expect(bodies.byteCount == 0)
        bodies.insert(BodyIdentity(data))
        #expect(bodies.byteCount == 100)
        withExtendedLifetime(data) {}
    }
}
