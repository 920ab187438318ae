// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// The idle connections that the server closes to make room for new ones, longest idle first.
struct IdleConnections {
    /// The nanoseconds after which a connection with an incomplete head counts as idle; honest clients are faster.
    private static let slowHeadTime: UInt64 = 1_000_000_000

    /// The least nanoseconds between two searches.
    private let searchPeriod: UInt64
    /// The time in nanoseconds before which no new search begins.
    private var nextSearch: UInt64 = 0
    /// The connections from the last search and the starts of their waits; the longest wait is last.
    private var found: [(connection: Connection, start: UInt64)] = []

    init(searchPeriod: UInt64) {
        self.searchPeriod = searchPeriod
    }

    /// Removes and returns the connection that has been idle for longest, or `nil` if none is left.
    ///
    /// A search through all connections takes a millisecond or more, so there is at most one in each period.
    mutating func takeLongest(of connections: [Connection?], at now: UInt64) -> Connection? {
        if self.found.isEmpty, now >= self.nextSearch {
            self.nextSearch = now + self.searchPeriod
            self.found = connections.compactMap { $0 }.filter(\.isReading).map { ($0, $0.idleStart) }
            self.found.sort { $0.start > $1.start }
        }
        while let (connection, start) = self.found.popLast() {
            // The connection may have ended or served a request meanwhile, or the kernel may have one for it.
            guard connection.isReading, connection.idleStart == start else { continue }
            if connection.isIdle || connection.parser.isInHead && now - start > Self.slowHeadTime { return connection }
        }
        return nil
    }

    /// Puts back the connection that was taken last.
    mutating func putBack(_ connection: Connection) {
        self.found.append((connection, connection.idleStart))
    }

    /// Removes the connections that the last search found.
    mutating func removeAll() {
        self.found.removeAll()
    }
}
