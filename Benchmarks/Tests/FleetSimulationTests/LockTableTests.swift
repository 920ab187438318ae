// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FleetSimulation

@Suite struct LockTableTests {
    private let first = LockTable.Claimant(node: 0, generation: 0)
    private let second = LockTable.Claimant(node: 1, generation: 0)

    @Test func `one claimant owns a lock until it releases it`() {
        var locks = LockTable()
        #expect(locks.claim(7, for: self.first) == true)
        #expect(locks.claim(7, for: self.second) == false)
        #expect(locks.claim(8, for: self.second) == true)
        #expect(locks.release(7, by: self.first) == [self.second])
        #expect(locks.claim(7, for: self.second) == true)
    }

    @Test func `a late release does not remove the lock of a new owner`() {
        var locks = LockTable()
        #expect(locks.claim(7, for: self.first) == true)
        let serial = locks.locks(of: self.first)[0].serial
        #expect(locks.expire(7, serial: serial) == [])
        #expect(locks.claim(7, for: self.second) == true)
        #expect(locks.release(7, by: self.first) == [])
        #expect(locks.expire(7, serial: serial) == [])
        #expect(locks.claim(7, for: self.first) == false)
    }

    @Test func `a node that started again is another claimant`() {
        var locks = LockTable()
        #expect(locks.claim(7, for: self.first) == true)
        let restarted = LockTable.Claimant(node: 0, generation: 1)
        #expect(locks.claim(7, for: restarted) == false)
        #expect(locks.locks(of: restarted).isEmpty)
    }
}
