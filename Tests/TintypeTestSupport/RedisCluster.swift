// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A Redis Cluster of three masters and three replicas that runs beside the tests.
public final class RedisCluster: Sendable {
    private static let slotCount = 16_384
    private static let masterCount = 3

    /// The masters, in the order of their slots, and the replicas in the order of their masters.
    public let servers: [RedisServer]
    /// The names of ``servers`` in the cluster.
    private let names: [String]

    /// The servers that began as masters.
    public var masters: [RedisServer] { Array(self.servers.prefix(Self.masterCount)) }

    /// Starts the servers, and returns when all of them serve all slots.
    ///
    /// - Throws: ``TestSupportError`` if a server cannot be started.
    public init() async throws {
        var (servers, names): ([RedisServer], [String]) = ([], [])
        let reservations = try (0..<2 * Self.masterCount).map { _ in try LoopbackSocket.reservePort() }
        // Once the servers have started, they hold their ports themselves.
        defer { for (descriptor, _) in reservations { close(descriptor) } }
        let busPorts = reservations.map(\.port)
        for (number, port) in busPorts.enumerated() {
            let options = [
                "--cluster-enabled yes", "--cluster-node-timeout 500", "--cluster-port \(port)",
                "--cluster-replica-validity-factor 0", "--repl-diskless-sync-delay 0",
            ]
            let server = try await RedisServer(port: nil, options: options)
            try server.run("CLUSTER", "SET-CONFIG-EPOCH", "\(number + 1)")
            names.append(try server.run("CLUSTER", "MYID"))
            servers.append(server)
        }
        for number in 0..<Self.masterCount {
            let first = number * Self.slotCount / Self.masterCount
            let last = (number + 1) * Self.slotCount / Self.masterCount - 1
            try servers[number].run("CLUSTER", "ADDSLOTSRANGE", "\(first)", "\(last)")
        }
        for server in servers {
            for (other, port) in zip(servers, busPorts) where other !== server {
                try server.run("CLUSTER", "MEET", "127.0.0.1", "\(other.port)", "\(port)")
            }
        }
        self.servers = servers
        self.names = names
        for number in 0..<Self.masterCount {
            let replica = servers[number + Self.masterCount]
            await until { (try? replica.run("CLUSTER", "REPLICATE", names[number])) != nil }
        }
        try await until { try servers.allSatisfy { try Self.isComplete($0) } }
        for replica in servers[Self.masterCount...] {
            try await until { try replica.run("INFO", "replication").contains("master_link_status:up") }
        }
        // On a busy machine, a replica might take over although no test wants it.
        for server in servers { try server.run("CONFIG", "SET", "cluster-node-timeout", "30000") }
    }

    private static func isComplete(_ server: RedisServer) throws -> Bool {
        let nodes = try server.run("CLUSTER", "NODES").split(separator: "\n")
        return try server.run("CLUSTER", "INFO").contains("cluster_state:ok")
            && nodes.count { $0.contains("slave") } == self.masterCount && nodes.count == 2 * self.masterCount
    }

    /// Moves a slot, which must be empty, to the master with this number.
    ///
    /// - Throws: ``TestSupportError`` if a server refuses.
    public func assign(slot: Int, to number: Int) throws {
        // A node that imports a slot gets the highest epoch with it, so that the other nodes believe it.
        let other = self.names[(number + 1) % Self.masterCount]
        _ = try? self.masters[number].run("CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", other)
        for server in [self.masters[number]] + self.masters {
            try server.run("CLUSTER", "SETSLOT", "\(slot)", "NODE", self.names[number])
        }
    }

    /// Begins to move a slot from one master to another; the keys stay where they are.
    ///
    /// - Throws: ``TestSupportError`` if a server refuses.
    public func beginMoving(slot: Int, from source: Int, to target: Int) throws {
        try self.masters[target].run("CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", self.names[source])
        try self.masters[source].run("CLUSTER", "SETSLOT", "\(slot)", "MIGRATING", self.names[target])
    }

    /// Moves a key between masters that are moving its slot.
    ///
    /// - Throws: ``TestSupportError`` if a server refuses.
    public func move(key: String, from source: Int, to target: Int) throws {
        try self.masters[source].run("MIGRATE", "127.0.0.1", "\(self.masters[target].port)", key, "0", "5000")
    }
}
