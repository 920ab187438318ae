// SPDX-License-Identifier: Apache-2.0

/// A server, its connections, and the calls that wait for them.
///
/// Only the engine uses it.
final class RedisNode {
    let address: RedisAddress
    var role: RedisNodeStatus.Role
    var connections: [RedisConnection] = []
    var queue = CallQueue()
    var schedule: ReconnectSchedule
    /// The moment before which no connection is opened.
    var nextAttempt = Int64.min
    var lastError: RedisError?
    /// The commands of connections that are closed.
    var earlierCommands: UInt64 = 0

    init(_ address: RedisAddress, role: RedisNodeStatus.Role, schedule: ReconnectSchedule) {
        self.address = address
        self.role = role
        self.schedule = schedule
    }

    /// Whether a connection is being opened, or greets the server.
    var isOpening: Bool { self.connections.contains { $0.phase == .connecting || $0.phase == .greeting } }

    /// The ready connection with the fewest commands on their way.
    var leastBusy: RedisConnection? {
        if self.connections.count == 1 { return self.connections[0].phase == .ready ? self.connections[0] : nil }
        return self.connections.filter { $0.phase == .ready }.min { $0.owedCount < $1.owedCount }
    }

    /// Whether the deadline of a call comes before the next attempt to reach the node.
    func isOutOfReach(until deadline: Int64, now: Int64) -> Bool {
        self.connections.isEmpty && self.nextAttempt > deadline && self.nextAttempt > now
    }

    /// Records that an attempt failed, or that a connection was lost.
    func recordFailure(_ error: RedisError, pause: Int64, now: Int64) {
        self.lastError = error
        self.nextAttempt = now + pause
    }

    var status: RedisNodeStatus {
        let state: RedisNodeStatus.State =
            if self.connections.contains(where: { $0.phase == .ready }) {
                .connected
            } else if self.isOpening {
                .connecting
            } else {
                self.lastError == nil ? .idle : .disconnected
            }
        return RedisNodeStatus(
            address: self.address,
            role: self.role,
            state: state,
            lastError: self.lastError,
            sentCommands: self.connections.reduce(self.earlierCommands) { $0 + $1.sentCount },
            waitingCommands: self.connections.reduce(self.queue.count) { $0 + $1.owedCount }
        )
    }
}
