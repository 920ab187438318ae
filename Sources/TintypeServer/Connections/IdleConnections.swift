// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// The connections that have been idle for longest, in whose place the server accepts new ones.
struct IdleConnections {
    /// The nanoseconds after which a connection with an incomplete head counts as idle; honest clients are faster.
    private static let slowHeadTime: UInt64 = 1_000_000_000

    /// The nanoseconds from one search to the next.
    private let searchPeriod: UInt64
    /// The time in nanoseconds before which no new search begins.
    private var nextSearch: UInt64 = 0
    /// The connections that the last search found, and since when they wait; the one that has waited longest is last.
    private var found: [(connection: Connection, start: UInt64)] = []

    init(searchPeriod: UInt64) {
        self.searchPeriod = searchPeriod
    }

    /// Takes the connection that has been idle for longest, or returns `nil` if the last search found no more.
    ///
    /// A search through all connections takes a millisecond or more, so there is at most one in each period.
    mutating func takeLongest(of connections: [Connection?], at now: UInt64) -> Connection? {
        if self.found.isEmpty, now >= self.nextSearch {
            self.nextSearch = now + self.searchPeriod
            for case let connection? in connections where connection.isReading { self.putBack(connection) }
            self.found.sort { $0.start > $1.start }
        }
        while let (connection, start) = self.found.popLast() {
            // The connection may have served a request meanwhile, or the kernel may have one for it.
            guard connection.idleStart == start else { continue }
            if connection.isIdle || connection.parser.isInHead && now - start > Self.slowHeadTime { return connection }
        }
        return nil
    }

    /// Puts a connection back that was taken last.
    mutating func putBack(_ connection: Connection) {
        self.found.append((connection, connection.idleStart))
    }

    /// Forgets the connections that the last search found.
    mutating func removeAll() {
        self.found.removeAll()
    }
}
