// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TintypeTestSupport

/// Redis killed and then paused, one after the other and without other faults, so that times can be compared.
struct Outages {
    private static let phase = Duration.seconds(20)
    /// The longest pause of a client between two requests, in milliseconds.
    ///
    /// Servers without Redis compute more. At a rate that they can only just serve, requests would wait for processors,
    /// and not only for Redis.
    private static let longestPause = 3_000
    /// The commands of Redis for which a load waits: for the result, for its source, and for the lock.
    private static let commandCount = 3
    /// The default time of a server for a command.
    private static let commandMilliseconds = 20.0
    /// The longest time until a server stops asking a Redis that does not answer.
    private static let circuitLimit = Duration.seconds(1)
    private static let closingLimit = Duration.seconds(15)
    /// The connections of a server: one for commands and one for messages.
    private static let connectionLimit = 2
    /// The most milliseconds for 99 % of the answers while Redis works; a lock that nobody releases costs seconds.
    private static let calmLimit = 500.0

    let load: Load
    let redis: Member
    let servers: [Server]
    let redisPort: Int
    let report: Report
    /// Whether all servers have reported to Redis that they use it.
    let areCircuitsClosed: () async throws -> Bool

    /// Runs both outages under load, which has begun.
    func run() async throws {
        let busyPause = self.load.longestPause.exchange(Self.longestPause, ordering: .relaxed)
        defer { self.load.longestPause.store(busyPause, ordering: .relaxed) }
        // The first images are new everywhere.
        try await Task.sleep(for: Self.phase / 4)
        let calm = try await self.slowest(during: "calm")
        self.report.bar(
            "with Redis, no load waits for a lock without an owner",
            calm <= Self.calmLimit,
            "99 % of the answers within \(Int(calm)) ms"
        )

        self.redis.kill()
        let killed = try await self.slowest(during: "Redis killed")
        try await self.redis.start()
        let limit = calm + Double(Self.commandCount) * Self.commandMilliseconds
        self.report.bar(
            "without Redis, 99 % of the answers come within the time of \(Self.commandCount) commands more",
            killed <= limit,
            "\(Int(killed)) ms instead of \(Int(calm)) ms"
        )

        let closing = try await time(within: Self.closingLimit) { try await self.areCircuitsClosed() }
        self.report.bar(
            "all servers use Redis again",
            closing != nil,
            closing.map { "after \($0.text)" } ?? "not all within \(Self.closingLimit.text)"
        )
        let threads = self.threads
        let openings = self.servers.map { self.openingCount(of: $0) }
        self.redis.pause()
        let opening = try await time(within: Self.circuitLimit * 5) {
            zip(self.servers, openings).allSatisfy { self.openingCount(of: $0) > $1 }
        }
        var connections: [Int] = []
        _ = try await self.slowest(during: "Redis paused") { connections.append(self.connectionCount) }
        let laterThreads = self.threads
        self.redis.resume()
        self.report.bar(
            "with Redis paused, all circuits open within \(Self.circuitLimit.text)",
            opening.map { $0 <= Self.circuitLimit } ?? false,
            opening.map { "after \($0.text)" } ?? "not all"
        )
        self.report.bar(
            "with Redis paused, no server has more threads",
            zip(laterThreads, threads).allSatisfy { $0.count <= $1.count },
            "\(threads.map(\.count)), then \(laterThreads.map(\.count)), "
                + "new \(zip(laterThreads, threads).map(Self.difference))"
        )
        self.report.bar(
            "with Redis paused, the servers never have more than \(Self.connectionLimit) connections to it each",
            connections.allSatisfy { $0 <= self.servers.count * Self.connectionLimit },
            "of \(connections.count) counts, the highest is \(connections.max() ?? 0) for all"
        )
    }

    /// Returns the time in milliseconds of the slowest hundredth of the answers in a phase, and calls `look` meanwhile.
    private func slowest(during name: String, _ look: () -> Void = {}) async throws -> Double {
        let start = self.load.ledger.milliseconds.count
        let end = ContinuousClock.now + Self.phase
        while .now < end {
            look()
            try await Task.sleep(for: .milliseconds(100))
        }
        let times = self.load.ledger.milliseconds.dropFirst(start).sorted()
        guard !times.isEmpty else {
            throw TestSupportError("No request ended: \(name). \(self.load.ledger.failed.first ?? "None failed.")")
        }
        let slowest = times[times.count * 99 / 100]
        self.report.line("  \(name): \(times.count) answers, 99 % within \(Int(slowest)) ms")
        return slowest
    }

    private func openingCount(of server: Server) -> Int {
        server.member.log.count { $0.contains("Redis fails, so this server continues without it") }
    }

    /// The names of the threads of each server, without the threads of the runtime's pool.
    ///
    /// The pool has at most one thread for each core, and starts and ends them whenever it likes.
    private var threads: [[Substring]] {
        self.servers.map { server in
            let folder = "/proc/\(server.member.number)/task"
            let numbers = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return numbers.compactMap { number in
                let name = try? String(contentsOfFile: "\(folder)/\(number)/comm", encoding: .utf8)
                return name.flatMap { $0.hasSuffix("-qos\n") ? nil : $0.prefix { $0 != "\n" } }
            }
        }
    }

    /// Returns the elements of `later` that `earlier` does not have, each as often as it is new.
    private static func difference(_ later: [Substring], _ earlier: [Substring]) -> [Substring] {
        var rest = earlier
        return later.filter { name in
            guard let index = rest.firstIndex(of: name) else { return true }
            rest.remove(at: index)
            return false
        }
    }

    /// The connections to Redis that are open or being opened, on the hosts of all servers.
    private var connectionCount: Int {
        let port = String(format: "%04X", self.redisPort)
        let lines = self.servers.flatMap { server in
            let table = try? String(contentsOfFile: "/proc/\(server.member.number)/net/tcp", encoding: .utf8)
            return (table ?? "").split(separator: "\n").dropFirst()
        }
        // The columns are the number, the local address, the remote address and the state: 01 is open, 02 opening.
        let connections = lines.compactMap { line -> Substring? in
            let columns = line.split(separator: " ")
            guard columns.count > 3, columns[2].hasSuffix(":\(port)"), ["01", "02"].contains(columns[3]) else {
                return nil
            }
            return columns[1]
        }
        // Without namespaces, all servers have the same table.
        return Set(connections).count
    }
}
