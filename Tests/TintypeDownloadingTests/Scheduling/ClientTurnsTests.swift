// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestTraits

@testable import TintypeDownloading

@Suite(.computing) struct ClientTurnsTests {
    private static let (first, second) = (WorkClient(number: 1), WorkClient(number: 2))

    @Test func `each client has at most one transfer in a round`() {
        var turns = ClientTurns()
        let rounds = [Self.first, Self.first, Self.second, nil, Self.first, nil].map { turns.add($0) }
        #expect(rounds == [0, 1, 0, 0, 2, 0])
    }

    @Test func `a new client joins the current round`() {
        var turns = ClientTurns()
        for _ in 0..<4 { _ = turns.add(Self.first) }
        for round in 0..<3 { turns.start(Self.first, round: round, isInTurn: true) }
        #expect(turns.add(Self.second) == 2)
        #expect(turns.add(Self.first) == 4)
    }

    @Test func `a client that has had its turn comes after others, even if it has no other transfer`() {
        var turns = ClientTurns()
        for _ in 0..<2 { _ = turns.add(Self.second) }
        turns.start(Self.first, round: turns.add(Self.first), isInTurn: true)
        #expect(turns.add(Self.first) == 1)
    }

    @Test(arguments: [90, 89]) func `transfers that left do not count`(count: Int) {
        var turns = ClientTurns()
        _ = turns.add(Self.second)
        for _ in 0..<90 { _ = turns.add(Self.first) }
        for _ in 0..<count { turns.remove(Self.first) }
        #expect(turns.add(Self.first) == 90 - count)
    }

    @Test func `a client whose other transfers left gets no second turn in a round`() {
        var turns = ClientTurns()
        for _ in 0..<3 { _ = turns.add(Self.first) }
        for _ in 0..<2 { turns.remove(Self.first) }
        turns.start(Self.first, round: 2, isInTurn: true)
        #expect(turns.add(Self.second) == 2)
        #expect(turns.add(Self.first) == 3)
    }

    @Test func `a start before its turn uses one round, although the client's earlier transfers left`() {
        var turns = ClientTurns()
        _ = turns.add(Self.second)
        for _ in 0..<20 { _ = turns.add(Self.first) }
        for _ in 0..<19 { turns.remove(Self.first) }
        turns.start(Self.first, round: 19, isInTurn: false)
        #expect(turns.add(Self.first) == 1)
    }

    @Test func `a start before its turn ends no round`() {
        var turns = ClientTurns()
        for _ in 0..<3 { _ = turns.add(Self.first) }
        turns.start(Self.first, round: 2, isInTurn: false)
        #expect(turns.add(Self.second) == 0)
        #expect(turns.add(Self.first) == 3)
    }

    @Test func `clients without waiting transfers are forgotten if there are many`() {
        var turns = ClientTurns()
        _ = turns.add(Self.first)
        for number in 2..<5_000 {
            let client = WorkClient(number: UInt128(number))
            turns.start(client, round: turns.add(client), isInTurn: true)
        }
        #expect(turns.clientCount <= 1_025)
        #expect(turns.add(Self.first) == 1)
    }

    @Test func `clients whose transfers all left are forgotten`() {
        var turns = ClientTurns()
        for number in 0..<5_000 {
            let client = WorkClient(number: UInt128(number))
            _ = turns.add(client)
            turns.remove(client)
        }
        #expect(turns.clientCount == 0)
    }

    @Test func `if many clients wait, not every start looks for clients to forget`() {
        var turns = ClientTurns()
        for number in 10..<2_000 { _ = turns.add(WorkClient(number: UInt128(number))) }
        for client in [Self.first, Self.second] { turns.start(client, round: turns.add(client), isInTurn: true) }
        #expect(turns.add(Self.second) == 1)
    }
}
