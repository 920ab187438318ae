// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// The client in `peers/http_load.c`, which loads all servers alike.
struct HTTPLoad: Sendable {
    /// The kinds of clients, as `http_load.c` describes them.
    enum Mode: String, Sendable {
        case load, close, idle, mute, drip
    }

    /// The figures of one run.
    struct Answer: Decodable, Sendable {
        /// The answers with one status, and percentiles of their times in milliseconds.
        struct Status: Decodable, Sendable {
            let count: Int
            let p50: Double
            let p99: Double
        }

        let seconds: Double
        /// The connections that were not made, or ended without an answer.
        let failed: Int
        /// The held connections that the server closed, and the time of the last one.
        let closed: Int
        let lastClose: Double
        let answers: [String: Status]

        /// The number of answers with `status`.
        func count(_ status: Int) -> Int { self.answers["\(status)"]?.count ?? 0 }
    }

    /// Connections that are held open until ``end()``.
    struct Holding: Sendable {
        fileprivate let process: ChildProcess

        /// Ends the clients at once, and returns when the system has closed their connections.
        func leave() async throws {
            let process = self.process
            kill(process.identifier, SIGKILL)
            _ = try await BlockingLane.shared.run { process.wait() }
        }

        /// Closes the connections, and returns the figures.
        func end() async throws -> Answer {
            try self.process.input?.close()
            return try await self.answer()
        }

        /// Waits until the server has closed all connections, and returns the figures.
        func answer() async throws -> Answer {
            let process = self.process
            return try await BlockingLane.shared.run {
                let output = try process.output?.readToEnd() ?? Data()
                _ = process.wait()
                return try JSONDecoder().decode(Answer.self, from: output)
            }
        }
    }

    /// The requests of the clients.
    struct Requests: Sendable {
        var connections: Int
        /// The targets, in each of which a number replaces a `#`.
        var targets: [String]
        var mode = Mode.load
        /// How many answers end the load, or 0 for no limit.
        var count = 0
        /// The longest time of the load.
        var seconds = 120.0
        /// The pause after a refusal, or between the bytes of a slow head.
        var pauseMilliseconds = 0
        /// Lines for the head, each with its end of line.
        var fields = ""
    }

    /// The numbers in targets, which no run repeats.
    private static let number = Atomic<Int>(0)

    private let program: String

    /// Compiles the client.
    init(_ session: Session) async throws {
        self.program = session.folders.temporary.appendingPathComponent("http-load").path
        guard !FileManager.default.fileExists(atPath: self.program) else { return }
        let source = session.folders.benchmarks.appendingPathComponent("peers/http_load.c").path
        let compile = ["/usr/bin/env", "cc", "-O2", "-o", self.program, source]
        guard try await ChildProcess.run(compile).exit.status == 0 else {
            throw Unavailable("http_load.c does not build (apt install gcc)")
        }
    }

    /// Sends `requests` to `server`.
    func run(_ requests: Requests, to server: MeasuredServer) async throws -> Answer {
        let (exit, output) = try await ChildProcess.run(self.command(requests, server))
        try Check.equal("the exit status of http_load", exit.status, 0)
        return try JSONDecoder().decode(Answer.self, from: Data(output.utf8))
    }

    /// Starts clients in the background, and returns at once.
    func start(_ requests: Requests, to server: MeasuredServer) async throws -> Holding {
        try await BlockingLane.shared.run {
            Holding(process: try ChildProcess(self.command(requests, server), hasInput: true))
        }
    }

    /// Opens connections, and returns when all of them have reached the state of their mode.
    func hold(_ requests: Requests, to server: MeasuredServer) async throws -> Holding {
        let holding = try await self.start(requests, to: server)
        return try await BlockingLane.shared.run {
            try Check.equal("the line of http_load", holding.process.output?.availableData, Data("ready\n".utf8))
            return holding
        }
    }

    /// The side of a contest that sends `requests` to `server` and expects answers with `status` only.
    func contestant(
        _ requests: Requests,
        to server: MeasuredServer,
        status: Int = 200,
        note: String? = nil
    ) -> Contestant {
        Contestant(counts: requests.connections...10_000_000, note: note) { count in
            var requests = requests
            requests.count = count
            server.resetPeak()
            let cpu = server.cpuSeconds
            let answer = try await self.run(requests, to: server)
            let cpuSeconds = server.cpuSeconds - cpu
            try Check.equal("the number of answers with \(status)", answer.count(status), count)
            return Measurement(
                wallSeconds: answer.seconds,
                cpuSeconds: cpuSeconds,
                operations: count,
                peakBytes: server.peakBytes,
                tailMilliseconds: answer.answers["\(status)"]?.p99
            )
        }
    }

    /// The command of the client.
    func command(_ requests: Requests, _ server: MeasuredServer) -> [String] {
        let numbers = max(requests.count, 1_000_000)
        let first = Self.number.wrappingAdd(numbers, ordering: .relaxed).oldValue
        return [
            self.program, requests.mode.rawValue, "\(server.port)", "\(requests.connections)", "\(requests.count)",
            "\(requests.seconds)", "\(first)", "\(requests.pauseMilliseconds)", requests.fields,
        ] + requests.targets
    }
}
