// SPDX-License-Identifier: Apache-2.0

import CTintypeHiredis
import Foundation

/// A Redis server, and the bare ways to read a value from it.
struct RedisPeer: Sendable {
    static let byteCount = 50_000
    static let key = "value"

    let port: UInt16
    private let process: ChildProcess

    static func start(_ session: Session) async throws -> RedisPeer {
        let path = "/usr/bin/redis-server"
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw Unavailable("redis-server is not installed (apt install redis-server)")
        }
        let port = try NginxOrigin.freePort()
        let folder = session.folders.temporary.path
        let process = try await BlockingLane.shared.run {
            try ChildProcess(
                NginxOrigin.dyingWithUs
                    + [path, "--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--dir", folder],
                output: .discarded
            )
        }
        let peer = RedisPeer(port: port, process: process)
        for _ in 0..<250 {
            if let connection = try? Connection(port) {
                try connection.set(Self.key, Data(repeating: 7, count: Self.byteCount))
                return peer
            }
            try await Task.sleep(for: .milliseconds(40))
        }
        await peer.end()
        throw Unavailable("redis-server did not answer within ten seconds")
    }

    func end() async {
        // It has inherited a mask of signals in which SIGTERM waits.
        kill(self.process.identifier, SIGKILL)
        _ = try? await BlockingLane.shared.run { self.process.wait() }
    }

    /// hiredis' blocking interface: a lower bound, not a rival.
    func synchronous() throws -> Contestant {
        let port = self.port
        return Contestant(note: "the blocking interface of hiredis: no key, no checksum, no metadata") { count in
            let connection = try Connection(port)
            var bytes = 0
            let measurement = try await Measurement.of(operations: count) {
                for _ in 0..<count { bytes += try connection.get(Self.key).count }
            }
            try Check.equal("the number of bytes", bytes, count * Self.byteCount)
            return measurement
        }
    }

    /// Redis' own load generator, which discards the values.
    func benchmark(_ options: [String]) -> Contestant {
        let command = ["/usr/bin/redis-benchmark", "-p", "\(self.port)", "-q"] + options
        return Contestant(counts: 5_000...1_000_000, note: "parses the values and discards them") { count in
            let wall = Stopwatch(.monotonic)
            let (exit, _) = try await ChildProcess.run(command + ["-n", "\(count)", "GET", Self.key])
            let seconds = wall.seconds
            try Check.equal("the exit status", exit.status, 0)
            return Measurement(wallSeconds: seconds, cpuSeconds: exit.cpuSeconds, operations: count)
        }
    }

    /// A connection of hiredis.
    private final class Connection {
        private let context: UnsafeMutablePointer<redisContext>

        init(_ port: UInt16) throws {
            guard let context = redisConnect("127.0.0.1", CInt(port)) else { throw Unavailable("no memory") }
            self.context = context
            guard context.pointee.err == 0 else { throw Unavailable("no connection to Redis") }
        }

        deinit { redisFree(self.context) }

        func get(_ key: String) throws -> Data {
            try self.reply(to: Data("*2\r\n$3\r\nGET\r\n$\(key.utf8.count)\r\n\(key)\r\n".utf8))
        }

        func set(_ key: String, _ value: Data) throws {
            let head = "*3\r\n$3\r\nSET\r\n$\(key.utf8.count)\r\n\(key)\r\n$\(value.count)\r\n"
            _ = try self.reply(to: Data(head.utf8) + value + Data("\r\n".utf8))
        }

        private func reply(to command: Data) throws -> Data {
            command.withUnsafeBytes { bytes in
                let text = bytes.assumingMemoryBound(to: CChar.self)
                _ = redisAppendFormattedCommand(self.context, text.baseAddress, text.count)
            }
            var raw: UnsafeMutableRawPointer?
            guard redisGetReply(self.context, &raw) == REDIS_OK, let raw else { throw Unavailable("no reply of Redis") }
            defer { freeReplyObject(raw) }
            let reply = raw.assumingMemoryBound(to: redisReply.self).pointee
            guard let text = reply.str else { throw Unavailable("Redis has no such value") }
            return Data(bytes: text, count: reply.len)
        }
    }
}
