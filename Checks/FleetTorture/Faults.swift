// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TintypeRedis
import TintypeTestSupport

/// Random faults of Redis and of servers, which are over when ``run(until:)`` returns.
final class Faults: Sendable {
    private enum RedisFault: String, CaseIterable {
        case kill = "Redis killed", pause = "Redis paused", partition = "Redis cut off", shortage = "Redis full"
        case flush = "Redis emptied", forgetScripts = "scripts forgotten", dropClients = "clients of Redis dropped"
    }

    private enum ServerFault: String, CaseIterable {
        case kill = "server killed", pause = "server paused", partition = "server cut off", slowness = "link slow"
    }

    private let network: Network
    private let redis: Member
    private let client: RedisClient
    private let servers: [Server]
    private let load: Load
    private let counts = Mutex<[String: Int]>([:])

    init(network: Network, redis: Member, client: RedisClient, servers: [Server], load: Load) {
        (self.network, self.redis, self.client, self.servers, self.load) = (network, redis, client, servers, load)
    }

    /// The number of faults of each kind.
    var summary: String {
        let names = RedisFault.allCases.map(\.rawValue) + ServerFault.allCases.map(\.rawValue)
        let counts = self.counts.withLock { $0 }
        return names.map { "\($0) \(counts[$0, default: 0])" }.joined(separator: ", ")
    }

    /// Causes faults of Redis, and at the same time faults of servers, until a moment.
    func run(until end: ContinuousClock.Instant, seed: UInt64) async throws {
        try await withThrowingTaskGroup { group in
            group.addTask { try await self.repeat(until: end, seed: seed &+ 1, self.failRedis) }
            group.addTask { try await self.repeat(until: end, seed: seed &+ 2, self.failServer) }
            try await group.waitForAll()
        }
    }

    private func `repeat`(
        until end: ContinuousClock.Instant,
        seed: UInt64,
        _ fault: (inout SeededGenerator) async throws -> Void
    ) async throws {
        var generator = SeededGenerator(seed: seed)
        while .now < end {
            try await fault(&generator)
            try await self.pause(0.2...3, &generator)
        }
    }

    private func failRedis(_ generator: inout SeededGenerator) async throws {
        guard let fault = RedisFault.allCases.randomElement(using: &generator) else { return }
        if fault == .partition, !self.network.hasLinks { return }
        let end = self.begin(fault.rawValue)
        defer { end() }
        switch fault {
        case .kill:
            self.redis.kill()
            try await self.pause(0.1...3, &generator)
            try await self.redis.start()
        case .pause:
            self.redis.pause()
            try await self.pause(0.05...6, &generator)
            self.redis.resume()
        case .partition:
            for index in self.servers.indices { try self.network.setLink(of: index, up: false) }
            try await self.pause(0.1...6, &generator)
            for index in self.servers.indices { try self.network.setLink(of: index, up: true) }
        case .shortage:
            let policy = Bool.random(using: &generator) ? "allkeys-lfu" : "noeviction"
            try await self.configure(["maxmemory-policy": policy, "maxmemory": "3mb"])
            try await self.pause(1...4, &generator)
            try await self.configure(["maxmemory-policy": "allkeys-lfu", "maxmemory": "64mb"])
        case .flush: _ = try await self.client.run(RedisCommand("FLUSHALL"))
        case .forgetScripts: _ = try await self.client.run(RedisCommand("SCRIPT", "FLUSH"))
        case .dropClients:
            for type in ["normal", "pubsub"] {
                _ = try await self.client.run(RedisCommand("CLIENT", "KILL", "TYPE", .text(type), "SKIPME", "yes"))
            }
        }
    }

    private func failServer(_ generator: inout SeededGenerator) async throws {
        guard let fault = ServerFault.allCases.randomElement(using: &generator) else { return }
        let index = Int.random(in: self.servers.indices, using: &generator)
        if fault == .partition, !self.network.hasLinks { return }
        if fault == .slowness, !self.network.hasSlowLinks { return }
        let member = self.servers[index].member
        let end = self.begin(fault.rawValue, of: index)
        defer { end() }
        switch fault {
        case .kill:
            member.kill()
            try await self.pause(0.1...3, &generator)
            try await member.start()
        case .pause:
            member.pause()
            // Also longer than the lifetime of a lock.
            try await self.pause(0.05...9, &generator)
            member.resume()
        case .partition:
            try self.network.setLink(of: index, up: false)
            try await self.pause(0.1...9, &generator)
            try self.network.setLink(of: index, up: true)
        case .slowness:
            try self.network.setSlow(index, true)
            try await self.pause(0.5...6, &generator)
            try self.network.setSlow(index, false)
        }
    }

    /// Counts a fault, and names it in descriptions of failures until the returned function is called.
    private func begin(_ name: String, of server: Int? = nil) -> () -> Void {
        self.counts.withLock { $0[name, default: 0] += 1 }
        let event = server.map { "\(name) (\($0))" } ?? name
        self.load.events.withLock { $0 = $0.suffix(5) + ["\(event) begins"] }
        return { self.load.events.withLock { $0 = $0.suffix(5) + ["\(event) ends"] } }
    }

    private func configure(_ settings: [String: String]) async throws {
        for (name, value) in settings {
            _ = try await self.client.run(RedisCommand("CONFIG", "SET", .text(name), .text(value)))
        }
    }

    private func pause(_ seconds: ClosedRange<Double>, _ generator: inout SeededGenerator) async throws {
        try await Task.sleep(for: .seconds(Double.random(in: seconds, using: &generator)))
    }
}
