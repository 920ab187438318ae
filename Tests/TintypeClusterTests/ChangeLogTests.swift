// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCluster

@Suite(.waiting, .timeLimit(.minutes(5))) struct ChangeLogTests {
    /// Runs `body` with a log in a Redis of its own.
    private func run(_ body: (RedisServer, ChangeLog) async throws -> Void) async throws {
        let redis = try await RedisServer()
        let store = SharedStore(try Cluster.Configuration(redis))
        try await body(redis, ChangeLog(store, "changes"))
        await store.redis.shutdown()
    }

    /// Returns the texts that a reader gets, in calls; `nil` is for changes that it has missed.
    private func read(_ log: ChangeLog, after last: inout String) async throws -> [[String]?] {
        let calls = CallLog()
        try await log.apply({ calls.append($0?.map(\.text)) }, after: &last)
        return calls.calls
    }

    @Test func `a reader gets each change once, in batches`() async throws {
        try await self.run { _, log in
            var last = Change.start
            #expect(try await self.read(log, after: &last) == [])
            try await log.append("a")
            #expect(try await self.read(log, after: &last) == [["a"]])
            #expect(try await self.read(log, after: &last) == [])
            let texts = (0..<600).map { "\($0)" }
            for text in texts { try await log.append(text) }
            let calls = try await self.read(log, after: &last)
            #expect(calls.count == 2)
            #expect(calls.compactMap(\.self).joined().elementsEqual(texts))
        }
    }

    @Test func `a reader stops at the end of its time, and goes on later`() async throws {
        try await self.run { _, log in
            var last = Change.start
            try await log.append("a")
            let calls = CallLog()
            try await log.apply({ calls.append($0?.map(\.text)) }, after: &last, until: .now)
            #expect(calls.calls == [])
            #expect(try await self.read(log, after: &last) == [["a"]])
        }
    }

    @Test func `a reader learns that changes are missing, and goes on with those that are left`() async throws {
        try await self.run { redis, log in
            var last = Change.start
            try await log.append("a")
            _ = try await self.read(log, after: &last)
            for number in 0..<602 { try await log.append("\(number)") }
            try redis.run("XTRIM", "tintype:1:changes", "MAXLEN", "600")
            let calls = try await self.read(log, after: &last)
            #expect(calls.first == .some(nil))
            #expect(calls.dropFirst().compactMap(\.self).joined().elementsEqual((2..<602).map { "\($0)" }))
        }
    }

    @Test func `a reader reads a new stream whose identifiers are smaller`() async throws {
        try await self.run { redis, log in
            var last = Change.start
            try await log.append("a")
            _ = try await self.read(log, after: &last)
            // Redis was started anew without its data, on a machine whose clock is behind.
            try redis.run("DEL", "tintype:1:changes")
            #expect(try await self.read(log, after: &last) == [])
            try redis.run("XADD", "tintype:1:changes", "1-1", "node", "b")
            #expect(try await self.read(log, after: &last) == [["b"]])
            #expect(last == "1-1")
        }
    }

    /// After reads that took too long, a reader reads little at once.
    @Test func `a slow reader misses no change of a new stream`() async throws {
        try await self.run { redis, log in
            var last = Change.start
            try await log.append("a")
            _ = try await self.read(log, after: &last)
            log.batchCount.store(1, ordering: .relaxed)
            try redis.run("DEL", "tintype:1:changes")
            let later = try #require(UInt64(last.prefix { $0 != "-" })) + 1_000
            for number in 1...3 {
                try redis.run("XADD", "tintype:1:changes", "\(later)-\(number)", "node", "\(number)")
            }
            let calls = try await self.read(log, after: &last)
            #expect(!calls.contains(nil))
            #expect(calls.compactMap(\.self).joined().elementsEqual(["1", "2", "3"]))
        }
    }

    @Test func `a slow reader misses no change when a server that lacks the last changes takes over`() async throws {
        try await self.run { redis, log in
            var last = Change.start
            for number in 0..<600 { try await log.append("\(number)") }
            _ = try await self.read(log, after: &last)
            log.batchCount.store(1, ordering: .relaxed)
            try redis.run("XDEL", "tintype:1:changes", last)
            for number in 600..<603 { try await log.append("\(number)") }
            let calls = try await self.read(log, after: &last)
            #expect(!calls.contains(nil))
            #expect(calls.compactMap(\.self).joined().suffix(3).elementsEqual(["600", "601", "602"]))
        }
    }

    @Test func `a stream that keeps changes by age loses what is older than any entry`() async throws {
        let redis = try await RedisServer("--stream-node-max-entries 1")
        let store = SharedStore(try Cluster.Configuration(redis))
        let log = ChangeLog(store, "purges", keepsByAge: true)
        try redis.run("XADD", "tintype:1:purges", "1-1", "node", "old")
        for text in ["a", "b"] { try await log.append(text) }
        var last = Change.start
        #expect(try await self.read(log, after: &last) == [["a", "b"]])
        await store.redis.shutdown()
    }
}

private final class CallLog: Sendable {
    private let state = Locked<[[String]?]>([])

    var calls: [[String]?] { self.state.withLock(\.self) }

    func append(_ texts: [String]?) { self.state.withLock { $0.append(texts) } }
}
