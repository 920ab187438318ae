// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeRedis

/// Slots, redirections and the directory of nodes, without I/O.
@Suite struct TopologyTests {
    private static let here = RedisAddress("10.0.0.1", port: 7_000)

    // MARK: Slots

    @Test(arguments: [
        ("", 0), ("123456789", 12_739), ("foo", 12_182), ("bar", 5_061), ("user1000", 3_443),
        ("{user1000}.following", 3_443), ("{user1000}.followers", 3_443), ("{bar", 4_015), ("foo{{bar}}zap", 4_015),
        ("foo{bar}{zap}", 5_061), ("foo{foo}", 12_182),
    ])
    func `a key has the slot that Redis computes`(key: String, slot: Int) {
        #expect(KeySlot.of(key) == slot)
    }

    @Test(arguments: ["foo{}{bar}", "foo}{bar", "foo{bar", "{}"]) func `a key without a hash tag counts as a whole`(
        key: String
    ) {
        // A longer key with the whole key as its tag has the same slot, unless the key ends the tag itself.
        if !key.contains("}") { #expect(KeySlot.of("{\(key)}x") == KeySlot.of(key)) }
        #expect(KeySlot.of(key) != KeySlot.of("bar"))
    }

    // MARK: Redirections

    @Test(arguments: [
        ("MOVED 3999 127.0.0.1:6381", Redirection.moved(slot: 3_999, RedisAddress("127.0.0.1", port: 6_381))),
        ("MOVED 0 ::1:6381", .moved(slot: 0, RedisAddress("::1", port: 6_381))),
        ("MOVED 16383 :7001", .moved(slot: 16_383, RedisAddress("10.0.0.1", port: 7_001))),
        ("MOVED 1 ?:7001", .moved(slot: 1, RedisAddress("10.0.0.1", port: 7_001))),
        ("ASK 1 node-2:7002", .ask(RedisAddress("node-2", port: 7_002))),
    ])
    func `a redirection names a node`(text: String, redirection: Redirection) {
        #expect(Redirection(text, from: Self.here) == redirection)
    }

    @Test(arguments: [
        "", "MOVED", "MOVED 1", "MOVED 16384 a:1", "MOVED -1 a:1", "MOVED x a:1", "MOVED 1 a", "MOVED 1 a:0",
        "MOVED 1 a:65536", "MOVED 1 a\0b:1", "ASK 1 a:", "ERR 1 a:1",
    ])
    func `another error is no redirection`(text: String) {
        #expect(Redirection(text, from: Self.here) == nil)
    }

    // MARK: Layout

    private static func text(_ text: String) -> RedisValue { .bytes(Data(text.utf8)) }

    private static func node(_ host: String, _ port: Int64) -> RedisValue {
        .array([self.text(host), .integer(port), self.text("id"), .array([])])
    }

    private static func range(_ first: Int64, _ last: Int64, _ nodes: RedisValue...) -> RedisValue {
        .array([.integer(first), .integer(last)] + nodes)
    }

    @Test func `a layout has masters, replicas and the owners of slots`() throws {
        let reply = RedisValue.array([
            Self.range(0, 100, Self.node("a", 1), Self.node("b", 2)),
            Self.range(101, 200, Self.node("", 3), Self.node("d", 4)),
            Self.range(300, 300, Self.node("a", 1), Self.node("b", 2)),
        ])
        var layout = try #require(ClusterLayout(reply, from: Self.here))
        let (a, c) = (RedisAddress("a", port: 1), RedisAddress("10.0.0.1", port: 3))
        #expect(layout.masters == [a, c])
        #expect(layout.replicas == [RedisAddress("b", port: 2), RedisAddress("d", port: 4)])
        #expect([0, 100, 101, 200, 201, 300].map(layout.master(of:)) == [a, a, c, c, nil, a])
        layout.serve(300...300, by: RedisAddress("e", port: 5))
        #expect(layout.master(of: 300) == RedisAddress("e", port: 5))
    }

    @Test(arguments: [
        RedisValue.null, .status("OK"), .array([.null]), .array([range(0, 1)]), .array([range(5, 4, node("a", 1))]),
        .array([range(-1, 4, node("a", 1))]), .array([range(0, 16_384, node("a", 1))]),
        .array([range(0, 1, node("a", 0))]),
        .array([range(0, 1, .null)]), .array([range(0, 1, node("a\0", 1))]), .array([range(0, 1, node("a", 70_000))]),
    ])
    func `a malformed layout is refused`(reply: RedisValue) {
        #expect(ClusterLayout(reply, from: Self.here) == nil)
    }

    @Test func `a layout with more nodes or ranges than a cluster can have is refused`() {
        let nodes = (0..<1_001).map { Self.node("a", Int64($0 + 1)) }
        let many = RedisValue.array([.array([.integer(0), .integer(1)] + nodes)])
        #expect(ClusterLayout(many, from: Self.here) == nil)
        let masters = nodes.enumerated().map { Self.range(Int64($0.offset), Int64($0.offset), $0.element) }
        #expect(ClusterLayout(.array(masters), from: Self.here) == nil)
        #expect(ClusterLayout(.array(masters.dropLast()), from: Self.here)?.masters.count == 1_000)
        let range = Self.range(0, 16_383, Self.node("a", 1))
        #expect(ClusterLayout(.array([range]), from: Self.here) != nil)
        #expect(ClusterLayout(.array([range, range]), from: Self.here) == nil)
    }

    // MARK: Directory

    private static func directory(_ deployment: RedisConfiguration.Deployment) -> RedisDirectory {
        RedisDirectory(RedisConfiguration(deployment))
    }

    private static let get = RedisCommand("GET", "foo", key: "foo", isReadOnly: true)

    @Test func `one server takes every command, and nobody is asked`() {
        var directory = Self.directory(.standalone(Self.here))
        #expect(directory.target(of: Self.get, now: 0) == Self.here)
        directory.refresh(now: 0)
        #expect(directory.nextQuestionTime == nil && directory.takeQuestion(now: .max) == nil)
        #expect(!directory.hasAlternatives)
    }

    @Test func `a cluster is asked for its layout, which then decides`() {
        let other = RedisAddress("a", port: 1)
        var directory = Self.directory(.cluster([Self.here]))
        #expect(directory.target(of: Self.get, now: 0) == nil)
        #expect(directory.takeQuestion(now: 0)?.address == Self.here)
        #expect(directory.takeQuestion(now: 0) == nil)
        let layout = RedisValue.array([
            Self.range(0, 9_999, Self.node("10.0.0.1", 7_000)), Self.range(10_000, 16_383, Self.node("a", 1)),
        ])
        #expect(directory.answer(layout, from: Self.here, now: 1) == nil)
        #expect(directory.target(of: Self.get, now: 2) == other)
        #expect(directory.target(of: RedisCommand("PING"), now: 2) == Self.here)
        #expect(directory.nodes.map(\.role) == [.master, .master])
        directory.move(slot: 12_182, to: Self.here)
        #expect(directory.target(of: Self.get, now: 2) == Self.here)
        // An old layout is asked for again, when a command needs it.
        #expect(directory.takeQuestion(now: 2) == nil)
        _ = directory.target(of: Self.get, now: 6_000_000_000)
        #expect(directory.takeQuestion(now: 6_000_000_000)?.address == Self.here)
    }

    @Test func `the sources are asked in turn, and all of them again after a pause`() {
        let seeds = [Self.here, RedisAddress("a", port: 1)]
        var directory = Self.directory(.cluster(seeds))
        directory.refresh(now: 0)
        #expect(directory.takeQuestion(now: 0)?.address == seeds[0])
        let error = RedisError(.disconnected, "away")
        #expect(directory.fail(error, now: 0) == false)
        #expect(directory.failure(until: 0) == nil)
        #expect(directory.takeQuestion(now: 0)?.address == seeds[1])
        #expect(directory.fail(error, now: 0) == true)
        #expect(directory.failure(until: 20_000_000) == error && directory.failure(until: 50_000_000) == nil)
        #expect(directory.takeQuestion(now: 0) == nil)
        #expect(directory.takeQuestion(now: 50_000_000)?.address == seeds[0])
    }

    @Test func `one reason asks once in a tenth of a second`() {
        var directory = Self.directory(.cluster([Self.here]))
        directory.refresh(now: 0)
        #expect(directory.takeQuestion(now: 0) != nil)
        _ = directory.answer(.array([Self.range(0, 1, Self.node("a", 1))]), from: Self.here, now: 0)
        directory.refresh(now: 1)
        #expect(directory.takeQuestion(now: 1) == nil)
        #expect(directory.nextQuestionTime == 100_000_000)
    }

    @Test func `Sentinel names the master`() {
        var directory = Self.directory(.sentinel([Self.here], service: "main"))
        #expect(directory.target(of: Self.get, now: 0) == nil)
        let question = directory.takeQuestion(now: 0)
        #expect(question?.role == .sentinel)
        #expect(question?.command == RedisCommand("SENTINEL", "get-master-addr-by-name", "main"))
        #expect(directory.answer(.null, from: Self.here, now: 0)?.code == .disconnected)
        let reply = RedisValue.array([Self.text("10.0.0.9"), Self.text("6379")])
        #expect(directory.answer(reply, from: Self.here, now: 0) == nil)
        #expect(directory.target(of: Self.get, now: 0) == RedisAddress("10.0.0.9"))
        #expect(directory.nodes.map(\.role) == [.master, .sentinel])
    }
}
