// SPDX-License-Identifier: Apache-2.0

/// A server that a ``RedisClient`` knows, and the state of its connections.
public struct RedisNodeStatus: Sendable, Equatable {
    /// The roles of servers.
    public enum Role: String, Sendable, Hashable {
        /// Takes commands.
        case master
        /// Copies a master.
        ///
        /// The client sends it no commands.
        case replica
        /// Knows the master of a service.
        case sentinel
        /// An address of the configuration whose role is not known yet.
        case unknown
    }

    /// The states of a node's connections.
    public enum State: String, Sendable, Hashable {
        /// The client needs no connection to the node at the moment.
        case idle
        /// A connection is being opened.
        case connecting
        /// At least one connection takes commands.
        case connected
        /// The last attempt failed, or the connection was lost.
        ///
        /// The client tries again when a command needs the node.
        case disconnected
    }

    /// The address.
    public let address: RedisAddress
    /// The role, as far as the client knows it.
    public let role: Role
    /// The state of the connections.
    public let state: State
    /// The last failure to reach the node, or `nil` after a success.
    public let lastError: RedisError?
    /// The number of commands sent to the node since the client was created, including the client's own.
    public let sentCommands: UInt64
    /// The number of commands that wait for the node, or for its replies.
    public let waitingCommands: Int
}
