// SPDX-License-Identifier: Apache-2.0

import CTintypeHiredis
import FoundationEssentials
import Testing

@testable import TintypeRedis

/// The parts without I/O: addresses, commands, replies, errors and pauses.
@Suite struct ValueTests {
    private static let here = RedisAddress("10.0.0.1", port: 7_000)

    // MARK: Configuration

    @Test(arguments: [
        ("redis://127.0.0.1", RedisConfiguration.Deployment.standalone(RedisAddress("127.0.0.1"))),
        ("REDIS://cache:7000/", .standalone(RedisAddress("cache", port: 7_000))),
        ("redis://[::1]:7000", .standalone(RedisAddress("::1", port: 7_000))),
        ("redis://[fe80::1]", .standalone(RedisAddress("fe80::1"))),
        ("redis+cluster://a:1,b,[::1]:3", .cluster([.init("a", port: 1), .init("b"), .init("::1", port: 3)])),
        ("redis+cluster://a:1/0", .cluster([.init("a", port: 1)])),
        ("redis+sentinel://a,b:2/main", .sentinel([.init("a", port: 26_379), .init("b", port: 2)], service: "main")),
    ])
    func `a URL names the servers`(url: String, deployment: RedisConfiguration.Deployment) throws {
        let configuration = try RedisConfiguration(url: url)
        #expect(configuration.deployment == deployment)
        #expect(configuration.password == nil && configuration.username == nil && configuration.database == 0)
        #expect(configuration.refusal == nil)
    }

    @Test func `a URL names the user, the password and the database`() throws {
        let full = try RedisConfiguration(url: "redis://app:p%40s%2Fs@host/12")
        #expect(full.username == "app" && full.password == "p@s/s" && full.database == 12)
        let withoutUser = try RedisConfiguration(url: "redis://:sec@ret@host")
        #expect(withoutUser.username == nil && withoutUser.password == "sec@ret")
        let sentinel = try RedisConfiguration(url: "redis+sentinel://u:p@host/main/4")
        #expect(sentinel.username == "u" && sentinel.database == 4)
    }

    @Test(arguments: [
        "", "host", "http://host", "rediss://host", "redis://", "redis://host:0", "redis://host:65536",
        "redis://host:x",
        "redis://a,b", "redis://host/one", "redis://host/-1", "redis://host/1/2", "redis://user@host",
        "redis://u:%zz@host",
        "redis://u:%f@host", "redis://::1", "redis://[::1", "redis://[::1]7000", "redis+cluster://a,,b",
        "redis+cluster://a/1", "redis+sentinel://a", "redis+sentinel://a/", "redis://ho st", "redis://u:%ff@host",
    ])
    func `a malformed URL is refused without its password in the message`(url: String) {
        let error = #expect(throws: RedisError.self) { try RedisConfiguration(url: url) }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.contains("%") != true || error?.message.contains("%25") == true)
    }

    @Test func `a configuration that cannot work says why`() {
        let good = RedisConfiguration(.standalone(RedisAddress("host")))
        #expect(good.refusal == nil)
        let changes: [(inout RedisConfiguration) -> Void] = [
            { $0.deployment = .cluster([]) },
            { $0.deployment = .sentinel([RedisAddress("host")], service: "") },
            { $0.deployment = .standalone(RedisAddress("", port: 1)) },
            { $0.deployment = .standalone(RedisAddress("a\0b")) },
            { $0.deployment = .standalone(RedisAddress("host", port: 70_000)) },
            { ($0.deployment, $0.database) = (.cluster([RedisAddress("host")]), 1) },
            { $0.database = -1 },
            { $0.username = "app" },
            { $0.connectionsPerNode = 0 },
            { $0.waitingLimit = 0 },
        ]
        for change in changes {
            var configuration = good
            change(&configuration)
            #expect(configuration.refusal?.code == .invalidConfiguration)
        }
    }

    // MARK: Commands

    @Test func `a command is an array of words with their lengths`() {
        let command = RedisCommand("SET", "k", .data(Data([0, 13, 10])), 1_234_567_890, "a\u{E4}")
        #expect(
            Self.encoded(command)
                == Array("*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\n\0\r\n\r\n$10\r\n1234567890\r\n$3\r\na\u{E4}\r\n".utf8)
        )
        #expect(Self.encoded(RedisCommand("PING")) == Array("*1\r\n$4\r\nPING\r\n".utf8))
    }

    @Test(arguments: [0, 9, 10, 16 << 10, (16 << 10) + 1, 1 << 20]) func `long words are sent without a copy`(
        count: Int
    ) {
        let body = Data(repeating: 7, count: count)
        let expected = Array("*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$\(count)\r\n".utf8) + body + Array("\r\n$2\r\nNX\r\n".utf8)
        #expect(Self.encoded(RedisCommand("SET", "k", .data(body), "NX")) == expected)
    }

    private static func encoded(_ command: RedisCommand) -> [UInt8] {
        var (scratch, bytes): ([UInt8], [UInt8]) = ([], [])
        command.encode(with: &scratch) { bytes += Array($0) }
        return bytes
    }

    @Test(arguments: [
        ("GET", RedisError.Code?.none), ("JSON.GET", nil), ("ft._list", nil), ("subscribe", .invalidCommand),
        ("SSubscribe", .invalidCommand), ("MULTI", .invalidCommand), ("SELECT", .invalidCommand), ("", .invalidCommand),
        ("GET ", .invalidCommand), ("subscribe\r\n", .invalidCommand), ("G\u{C4}T", .invalidCommand),
    ])
    func `a name is checked`(name: String, code: RedisError.Code?) {
        #expect(RedisCommand(name, "a").refusal?.code == code)
    }

    @Test func `a command may not switch replies off`() {
        #expect(RedisCommand("client", "reply", "off").refusal?.code == .invalidCommand)
        #expect(RedisCommand("CLIENT", .data(Data("REPLY".utf8)), "SKIP").refusal?.code == .invalidCommand)
        #expect(RedisCommand("CLIENT", "INFO").refusal == nil)
    }

    // MARK: Replies

    @Test(arguments: [
        ("+OK\r\n", RedisReply.value(.status("OK"))),
        (":-9223372036854775808\r\n", .value(.integer(.min))),
        ("$-1\r\n", .value(.null)),
        ("*-1\r\n", .value(.null)),
        ("$0\r\n\r\n", .value(.bytes(Data()))),
        ("$3\r\n\0\r\n\r\n", .value(.bytes(Data([0, 13, 10])))),
        ("*0\r\n", .value(.array([]))),
        (
            "*3\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n+b\r\n",
            .value(.array([.integer(1), .array([.bytes(Data("a".utf8)), .null]), .status("b")]))
        ),
        ("-ERR no\r\n", .error("ERR no")),
        ("*2\r\n:1\r\n-OOM full\r\n", .error("OOM full")),
        ("+\u{FF}\r\n", .value(.status("\u{FF}"))),
    ])
    func `a reply becomes a value or an error`(text: String, reply: RedisReply) throws {
        #expect(try Self.reply(Data(text.utf8)) == reply)
    }

    @Test func `a long reply keeps its memory`() throws {
        let body = Data(repeating: 7, count: 100_000)
        let text = Data("$100000\r\n".utf8) + body + Data("\r\n".utf8)
        #expect(try Self.reply(text) == .value(.bytes(body)))
    }

    private static func reply(_ text: Data) throws -> RedisReply {
        let reader = try #require(redisReaderCreate())
        defer { redisReaderFree(reader) }
        text.withUnsafeBytes { bytes in
            _ = redisReaderFeed(reader, bytes.assumingMemoryBound(to: CChar.self).baseAddress, bytes.count)
        }
        var reply: UnsafeMutableRawPointer?
        #expect(redisReaderGetReply(reader, &reply) == REDIS_OK)
        let pointer = try #require(reply)
        defer { freeReplyObject(pointer) }
        return RedisReply(taking: pointer.assumingMemoryBound(to: redisReply.self))
    }

    @Test func `a value has the forms that it can have`() {
        #expect(RedisValue.bytes(Data("12".utf8)).number == 12)
        #expect(RedisValue.integer(12).number == 12 && RedisValue.integer(12).text == nil)
        #expect(RedisValue.status("OK").text == "OK" && RedisValue.status("OK").data == Data("OK".utf8))
        #expect(RedisValue.null.data == nil && RedisValue.null.number == nil && RedisValue.null.elements == nil)
        #expect(RedisValue.array([.null]).elements == [.null] && RedisValue.array([]).data == nil)
        #expect(RedisValue.bytes(Data([0xFF])).text == "\u{FFFD}")
    }

    @Test(arguments: [
        ("NOAUTH Authentication required.", RedisError.Code.refused),
        ("WRONGPASS invalid username-password pair or user is disabled.", .refused),
        ("NOPERM this user has no permissions", .refused),
        ("ERR invalid password", .refused),
        ("ERR DB index is out of range", .refused),
        ("READONLY You can't write against a read only replica.", .readOnly),
        ("NOREPLICAS Not enough good replicas to write.", .readOnly),
        ("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", .readOnly),
        ("LOADING Redis is loading the dataset in memory", .loading),
        ("OOM command not allowed when used memory > 'maxmemory'.", .outOfMemory),
        ("CLUSTERDOWN Hash slot not served", .clusterDown),
        ("TRYAGAIN Multiple keys request during rehashing of slot", .clusterDown),
        ("MASTERDOWN Link with MASTER is down", .clusterDown),
        ("MOVED 1 127.0.0.1:7000", .refused),
        ("ASK 1 127.0.0.1:7000", .refused),
        ("CROSSSLOT Keys in request don't hash to the same slot", .serverError),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", .serverError),
        ("", .serverError),
    ])
    func `the first word of an error decides its code`(text: String, code: RedisError.Code) {
        let error = RedisError(reply: text, from: Self.here)
        #expect(error.code == code)
        #expect(error.message.contains("10.0.0.1:7000 answered: \(text)") && !error.message.contains(".."))
    }

    @Test(arguments: [
        (
            "AUTH", RedisReply.error("ERR AUTH <password> called without any password configured"),
            RedisError.Code?.some(.refused)
        ),
        ("AUTH", .error("WRONGPASS no"), .refused),
        ("AUTH", .value(.status("OK")), nil),
        ("SELECT", .error("ERR DB index is out of range"), .refused),
        ("CLIENT", .error("DENIED Redis is running in protected mode"), .refused),
        ("CLIENT", .error("ERR max number of clients reached"), .refused),
        ("CLIENT", .error("ERR unknown command 'CLIENT'"), nil),
        ("CLIENT", .error("NOPERM no"), nil),
        ("CLIENT", .error("NOAUTH no"), .refused),
        ("CLIENT", .error("LOADING no"), .loading),
        ("ROLE", .value(.array([.bytes(Data("master".utf8))])), nil),
        ("ROLE", .value(.array([.bytes(Data("slave".utf8))])), .readOnly),
        ("ROLE", .value(.null), .readOnly),
    ])
    func `a greeting is judged`(command: String, reply: RedisReply, code: RedisError.Code?) {
        #expect(Greeting.refusal(of: reply, to: command, from: Self.here)?.code == code)
    }

    @Test func `a greeting has the credentials, the database and the check of the master`() {
        var configuration = RedisConfiguration(.sentinel([Self.here], service: "main"))
        configuration.username = "u"
        configuration.password = "p"
        configuration.database = 2
        let master = Greeting(configuration, role: .master).commands
        #expect(master.map(\.name) == ["AUTH", "SELECT", "ROLE", "CLIENT"])
        #expect(master[0].arguments == ["u", "p"])
        #expect(Greeting(configuration, role: .sentinel).commands.map(\.name) == ["CLIENT"])
    }

    // MARK: Pauses

    @Test func `each failure doubles the pause up to the longest one`() {
        var schedule = ReconnectSchedule(RedisConfiguration(.standalone(Self.here)))
        let pauses = (0..<8).map { _ in schedule.pauseAfterFailure(chance: 0) / 1_000_000 }
        #expect(pauses == [50, 100, 200, 400, 800, 1_600, 2_000, 2_000])
        for _ in 0..<200 { _ = schedule.pauseAfterFailure() }
        #expect(schedule.pauseAfterFailure(chance: 0) == 2_000_000_000)
        schedule.reset()
        #expect(schedule.pauseAfterFailure(chance: 0.999_999) / 1_000_000 == 25)
    }

    @Test func `a schedule with odd durations still pauses`() {
        var configuration = RedisConfiguration(.standalone(Self.here))
        configuration.firstReconnectDelay = .seconds(-1)
        configuration.longestReconnectDelay = .zero
        var schedule = ReconnectSchedule(configuration)
        #expect(schedule.pauseAfterFailure(chance: 0) == 1_000_000)
        configuration.firstReconnectDelay = .seconds(Int64.max)
        schedule = ReconnectSchedule(configuration)
        for _ in 0..<40 { #expect(schedule.pauseAfterFailure(chance: 0) == 1_000_000_000_000_000_000) }
    }

    // MARK: Queues

    private static func call(_ milliseconds: Int) -> RedisCall {
        RedisCall(RedisCommand("PING"), purpose: .caller, timeBudget: .milliseconds(milliseconds), now: 0)
    }

    @Test func `calls expire in the order of their deadlines`() {
        var queue = DeadlineQueue()
        for time in [5, 3, 9, 3, 1] { queue.insert(Self.call(time)) }
        #expect(queue.next() == 1_000_000)
        var expired: [Int64] = []
        while let call = queue.popExpired(now: 5_000_000) { expired.append(call.deadline / 1_000_000) }
        #expect(expired == [1, 3, 3, 5])
        #expect(queue.next() == 9_000_000)
        #expect(queue.removeAll().count == 1 && queue.next() == nil)
    }

    @Test func `settled calls leave the queues`() {
        var (deadlines, queue) = (DeadlineQueue(), CallQueue())
        let calls = (1...3_000).map { Self.call($0) }
        for call in calls {
            deadlines.insert(call)
            queue.append(call)
        }
        for call in calls.dropFirst().dropLast() { call.fail(RedisError(.timedOut, "")) }
        #expect(deadlines.next() == 1_000_000)
        deadlines.dropSettled(above: 100)
        queue.dropSettled(above: 100)
        #expect(deadlines.count == 2 && queue.count == 2)
        let rest = queue.removeAll()
        #expect(rest.count == 2 && rest[0] === calls[0] && rest[1] === calls[2_999])
        #expect(queue.isEmpty)
    }

    // MARK: Messages

    @Test func `a slow reader loses the oldest messages and sees that`() async {
        let buffer = MessageBuffer(channel: "c", limit: 3)
        for number in UInt8(0)..<5 { buffer.add(Data([number])) }
        buffer.finish()
        var messages: [Data?] = []
        while let message = await buffer.next() { messages.append(message) }
        #expect(messages == [nil, Data([3]), Data([4])])
    }

    @Test func `losses in a row are one`() async {
        let buffer = MessageBuffer(channel: "c", limit: 10)
        for message in [nil, nil, Data([1]), nil, nil] { buffer.add(message) }
        buffer.finish()
        buffer.add(Data([2]))
        var messages: [Data?] = []
        while let message = await buffer.next() { messages.append(message) }
        #expect(messages == [nil, Data([1]), nil])
    }
}
