// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeHTTP

@testable import TintypeServer

/// The choice of the connection that makes room for a new one.
struct IdleConnectionsTests {
    private static let second: UInt64 = 1_000_000_000

    /// Returns a connection that has been idle since `start` and has received `input`.
    ///
    /// Negative descriptors belong to no socket.
    private static func connection(_ descriptor: CInt, since start: UInt64, input: String = "") -> Connection {
        let connection = Connection(descriptor: descriptor, client: ClientAddress(bytes: []))
        connection.idleStart = start
        if !input.isEmpty { _ = Array(input.utf8).withUnsafeBytes { connection.parser.parse($0) } }
        return connection
    }

    @Test func `the connection that has waited longest goes first`() {
        let connections = [(-3, 20), (-4, 10), (-5, 30)].map { Self.connection($0.0, since: $0.1) }
        var idle = IdleConnections(searchPeriod: Self.second)
        let taken = (0..<4).map { _ in idle.takeLongest(of: connections, at: 100)?.descriptor }
        #expect(taken == [-4, -3, -5, nil])
    }

    @Test func `connections with a request, or with bytes of the next one, stay`() {
        let connections = (1...4).map { Self.connection(-CInt($0), since: UInt64($0)) }
        connections[0].phase = .sending
        connections[1].input = Array("GET".utf8)
        var idle = IdleConnections(searchPeriod: Self.second)
        let first = idle.takeLongest(of: connections, at: 100)?.descriptor
        // This one has served a request since the search.
        connections[3].idleStart = 50
        let second = idle.takeLongest(of: connections, at: 100)?.descriptor
        #expect([first, second] == [-3, nil])
    }

    @Test func `a connection whose head takes over a second counts as idle`() {
        for (age, isTaken) in [(Self.second, false), (Self.second + 1, true)] {
            let slow = Self.connection(-1, since: 0, input: "GET /")
            var idle = IdleConnections(searchPeriod: Self.second)
            let taken = idle.takeLongest(of: [slow], at: age)
            #expect((taken != nil) == isTaken)
        }
    }

    @Test func `a connection that has ended within a head makes no room`() {
        let slow = (1...2).map { Self.connection(-CInt($0), since: UInt64($0), input: "GET /") }
        var idle = IdleConnections(searchPeriod: Self.second)
        let first = idle.takeLongest(of: slow, at: 2 * Self.second)?.descriptor
        slow[1].phase = .closed
        let second = idle.takeLongest(of: slow, at: 2 * Self.second)?.descriptor
        #expect([first, second] == [-1, nil])
    }

    @Test func `a period has at most one search`() {
        var idle = IdleConnections(searchPeriod: Self.second)
        let connections = [Self.connection(-1, since: 0)]
        var taken = [idle.takeLongest(of: [nil], at: 0)]
        taken += [Self.second - 1, Self.second].map { idle.takeLongest(of: connections, at: $0) }
        #expect(taken.map { $0?.descriptor } == [nil, nil, -1])
    }

    @Test func `a connection that was put back is taken next`() throws {
        let connections = (1...2).map { Self.connection(-CInt($0), since: UInt64($0)) }
        var idle = IdleConnections(searchPeriod: Self.second)
        let longest = idle.takeLongest(of: connections, at: 100)
        let first = try #require(longest)
        idle.putBack(first)
        let again = idle.takeLongest(of: connections, at: 100)
        idle.putBack(first)
        idle.removeAll()
        let none = idle.takeLongest(of: connections, at: 100)
        #expect([first, again, none].map { $0?.descriptor } == [-1, -1, nil])
    }
}
