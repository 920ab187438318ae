// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FleetSimulation

@Suite struct EventQueueTests {
    @Test func `events come in the order of their times, and equal ones in the order in which they were added`() {
        var generator = SeededGenerator(seed: 11)
        var queue = EventQueue()
        var expected: [(time: Double, serial: Int)] = []
        for serial in 0..<5_000 {
            let time = Double(Int.random(in: 0..<200, using: &generator))
            expected.append((time, serial))
            queue.add(Event(time: time, kind: .renderEnds, node: 0, generation: 0, serial: serial))
        }
        expected.sort { ($0.time, $0.serial) < ($1.time, $1.serial) }
        for event in expected {
            #expect(queue.nextTime == event.time)
            #expect(queue.removeFirst()?.serial == event.serial)
        }
        #expect(queue.removeFirst() == nil)
        #expect(queue.nextTime == nil)
    }
}
