// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A Redis server that runs beside the tests and keeps nothing on disk.
public final class RedisServer: Sendable {
    public let port: Int
    private let folder: TemporaryDirectory
    private let process: ChildProcess
    /// Keeps other servers from the port while the process starts.
    private let reservation: CInt?

    /// Starts a server on a free port, and returns when it accepts connections.
    ///
    /// - Parameter options: More options of `redis-server`, such as `--requirepass secret`.
    /// - Throws: ``TestSupportError`` if the server cannot be started.
    public convenience init(_ options: String...) async throws {
        try await self.init(port: nil, options: options)
    }

    /// Starts a server, and returns when it accepts connections.
    ///
    /// - Parameters:
    ///   - port: The port; by default a free one.
    ///   - configuration: The lines of a configuration file, which Sentinel needs.
    ///   - options: More options of `redis-server`.
    /// - Throws: ``TestSupportError`` if the server cannot be started.
    public init(port: Int?, configuration: [String] = [], options: [String] = []) async throws {
        self.folder = try TemporaryDirectory()
        if let port {
            (self.reservation, self.port) = (nil, port)
        } else {
            let (descriptor, port) = try LoopbackSocket.reservePort()
            (self.reservation, self.port) = (descriptor, port)
        }
        try self.folder.write((configuration.joined(separator: "\n") + "\n").utf8, to: "redis.conf")
        let isSentinel = options.contains("--sentinel")
        var arguments = [try Program.path(of: "redis-server", package: "redis-server")]
        arguments += [self.folder.path(of: "redis.conf"), "--port", String(self.port), "--bind", "127.0.0.1"]
        arguments += ["--dir", self.folder.path, "--pidfile", self.folder.path(of: "pid")]
        if !isSentinel { arguments += ["--save", ""] }
        for option in options { arguments += option.split(separator: " ").map(String.init) }
        self.process = try ChildProcess(arguments, log: self.folder.path(of: "log"))
        let ready = isSentinel ? "Sentinel ID is" : "Ready to accept connections"
        await until { self.log.contains(ready) || self.log.contains("aborting") }
        guard self.log.contains(ready) else { throw TestSupportError("Redis did not start: \(self.log)") }
    }

    deinit {
        if let reservation { close(reservation) }
        self.resume()
    }

    /// The output of the server.
    public var log: String { self.content(of: "log") }

    /// Ends the server; its connections are closed.
    public func stop() {
        self.resume()
        self.process.stop()
    }

    /// Kills the server, which cannot say goodbye to its replicas.
    public func kill() {
        if let number = self.number { Glibc.kill(number, SIGKILL) }
        self.process.stop()
    }

    /// Stops the process, which keeps its connections open, until ``resume()``.
    public func pause() {
        if let number = self.number { Glibc.kill(number, SIGSTOP) }
    }

    /// Lets the process go on.
    public func resume() {
        if let number = self.number { Glibc.kill(number, SIGCONT) }
    }

    /// Runs a command on a connection of its own, and returns a reply that is a line, a number or one text.
    ///
    /// - Parameter words: The command and its arguments.
    /// - Returns: The reply.
    /// - Throws: ``TestSupportError`` if the server answers with an error, or not at all.
    @discardableResult
    public func run(_ words: String...) throws -> String {
        let descriptor = try LoopbackSocket.connect(port: self.port)
        defer { close(descriptor) }
        let command = "*\(words.count)\r\n" + words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
        guard LoopbackSocket.send(Array(command.utf8), to: descriptor) else {
            throw TestSupportError("Redis closed the connection.")
        }
        var bytes: [UInt8] = []
        while let piece = LoopbackSocket.receive(from: descriptor) {
            bytes += piece
            guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { continue }
            let line = String(decoding: bytes[1..<(end - 1)], as: UTF8.self)
            switch bytes[0] {
            case UInt8(ascii: "-"): throw TestSupportError("Redis refused \(words): \(line)")
            case UInt8(ascii: "$"):
                let count = max(0, Int(line) ?? 0)
                guard bytes.count >= end + 1 + count else { continue }
                return String(decoding: bytes[(end + 1)..<(end + 1 + count)], as: UTF8.self)
            default: return line
            }
        }
        throw TestSupportError("Redis did not answer \(words).")
    }

    private var number: pid_t? {
        let text = self.content(of: "pid").prefix { $0.isNumber }
        return pid_t(text)
    }

    /// Reads a file; `Data(contentsOf:)` leaks memory for an empty one.
    private func content(of name: String) -> String {
        guard let file = fopen(self.folder.path(of: name), "r") else { return "" }
        defer { fclose(file) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { content += buffer[..<count] }
        return String(decoding: content, as: UTF8.self)
    }
}
