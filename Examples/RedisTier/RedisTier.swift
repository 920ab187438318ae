// SPDX-License-Identifier: Apache-2.0

import CHiredis
public import FoundationEssentials
public import Tintype

/// A byte tier on a Redis server, which several processes share.
///
/// A family of keys is one hash: the original and its variants are fields of it, so that one command removes all of them.
/// hiredis blocks, so the actor runs on a thread of its own. Set the server's `maxmemory-policy` to `allkeys-lfu`.
public actor RedisTier: ByteTier {
    /// An error of the server, or of the connection to it.
    public struct Failure: Error, CustomStringConvertible { public let description: String }

    public nonisolated let name = "redis"
    private nonisolated let executor = ThreadExecutor(name: "redis")
    private let (host, port, lifetime): (String, Int32, Int)
    private var connection: Connection?

    public nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Creates a tier; a family of entries expires `lifetime` seconds after its last store, by default after a week.
    public init(host: String = "127.0.0.1", port: Int32 = 6_379, lifetime: Int = 604_800) {
        (self.host, self.port, self.lifetime) = (host, port, lifetime)
    }
    deinit { self.executor.shutdown() }

    public nonisolated func accepts(_ key: CacheKey, byteCount: Int) -> Bool { byteCount <= 4 << 20 }

    public func entry(for key: CacheKey) throws -> ByteEntry? {
        guard case .bytes(let bytes) = try self.run("HGET", self.family(of: key), key.digest) else { return nil }
        return ByteEntry(encoded: bytes, for: key)
    }

    public func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) throws {
        let (family, entry) = (self.family(of: key), ByteEntry(data: data, metadata: metadata))
        _ = try self.run("HSET", family, key.digest, value: entry.encoded(for: key))
        _ = try self.run("EXPIRE", family, "\(self.lifetime)")
    }

    public func remove(_ key: CacheKey) throws -> Bool {
        try self.run("HDEL", self.family(of: key), key.digest) == .number(1)
    }

    public func removeFamily(of key: CacheKey) throws -> Bool {
        try self.run("UNLINK", self.family(of: key)) == .number(1)
    }

    private func family(of key: CacheKey) -> String { "tintype:\(key.root.digest)" }

    /// Sends a command over the connection, or over a new one, and returns the reply.
    private func run(_ words: String..., value: Data? = nil) throws -> Reply {
        let connection = try self.connection ?? Connection(self.host, self.port)
        self.connection = nil
        let parts = words.map { Data($0.utf8) } + [value].compactMap { $0 }
        let reply = try connection.reply(to: parts)
        self.connection = connection  // A connection that failed is closed instead.
        if case .error(let text) = reply { throw Failure(description: text) }
        return reply
    }
}

private enum Reply: Equatable { case bytes(Data), number(Int64), error(String), nothing }

private final class Connection {
    private let context: UnsafeMutablePointer<redisContext>

    init(_ host: String, _ port: Int32) throws {
        let timeout = timeval(tv_sec: 0, tv_usec: 500_000)
        guard let context = redisConnectWithTimeout(host, port, timeout) else {
            throw RedisTier.Failure(description: "There is no memory for a connection.")
        }
        self.context = context
        guard context.pointee.err == 0, redisSetTimeout(context, timeout) == REDIS_OK else { throw self.failure }
    }

    deinit { redisFree(self.context) }

    func reply(to parts: [Data]) throws -> Reply {
        var command = Data("*\(parts.count)\r\n".utf8)
        for part in parts { command += Data("$\(part.count)\r\n".utf8) + part + Data("\r\n".utf8) }
        let text = command.map { CChar(bitPattern: $0) }
        redisAppendFormattedCommand(self.context, text, text.count)
        var raw: UnsafeMutableRawPointer?
        guard redisGetReply(self.context, &raw) == REDIS_OK, let raw else { throw self.failure }
        defer { freeReplyObject(raw) }
        let reply = raw.assumingMemoryBound(to: redisReply.self).pointee
        switch reply.type {
        case REDIS_REPLY_STRING: return .bytes(Data(bytes: reply.str, count: reply.len))
        case REDIS_REPLY_INTEGER: return .number(reply.integer)
        case REDIS_REPLY_ERROR: return .error(String(cString: reply.str))
        default: return .nothing
        }
    }

    private var failure: RedisTier.Failure {
        let text = withUnsafeBytes(of: self.context.pointee.errstr) { Array($0.prefix { $0 != 0 }) }
        return RedisTier.Failure(description: String(decoding: text, as: UTF8.self))
    }
}
