// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

/// Checks that very slow transfers end, even with the default limits, and do not delay other transfers.
@Suite(.waiting, .timeLimit(.minutes(5)))
struct SlownessTests {
    // MARK: The defaults, with simulated time

    /// Returns a transfer with the default limits, and its start.
    private static func transfer(_ lines: [String]) throws -> (TransferMachine, LoopInstant) {
        let request = DownloadRequest(url: try url("http://a.example/b"))
        var machine = TransferMachine(limits: TransferLimits(request, .init()))
        let start = LoopInstant.now
        _ = machine.transition(.submit, at: start)
        _ = machine.transition(.send(asksForRest: false, date: Date()), at: start)
        for line in lines {
            let bytes = Array("\(line)\r\n".utf8)
            let content = bytes.withUnsafeBytes { HeaderLine($0) }
            _ = machine.transition(.line(content, byteCount: bytes.count, isMultiplexed: false), at: start)
        }
        _ = machine.transition(.expect(.init(isWanted: machine.exchange?.status == 200)), at: start)
        return (machine, start)
    }

    /// Delivers something that does not count as progress, and checks the time limits.
    private static func look(
        at machine: inout TransferMachine,
        _ now: LoopInstant,
        bodyBytes: Int64
    ) -> TransferMachine.Action {
        let hasHead = machine.exchange?.body != nil
        _ = machine.transition(hasHead ? .bytes(0) : .line(.malformed, byteCount: 0, isMultiplexed: false), at: now)
        return machine.transition(.look(connectTime: .milliseconds(1), bodyBytes: bodyBytes), at: now)
    }

    /// Checks the time limits every half second, and returns the exceeded limit with the seconds until then.
    private static func end(
        of machine: inout TransferMachine,
        from start: LoopInstant,
        seconds: Int = 3_600,
        receivedBytes: (Double) -> Int64
    ) -> (limit: TransferMachine.TimeLimit, seconds: Double)? {
        for step in 1...(seconds * 2) {
            let time = Double(step) / 2
            let action = self.look(at: &machine, start + .milliseconds(500 * step), bodyBytes: receivedBytes(time))
            if case .expire(let limit) = action { return (limit, time) }
        }
        return nil
    }

    private static let head = ["HTTP/1.1 200 OK", "Content-Length: 10000000", ""]

    @Test func `a head that drips ends`() throws {
        var (transfer, start) = try Self.transfer(["HTTP/1.1 200 OK"])
        let end = try #require(Self.end(of: &transfer, from: start) { _ in 0 })
        #expect(end.limit == .firstByte)
        #expect(end.seconds == 30)
    }

    @Test func `informational responses put the end of the head off no further`() throws {
        var (transfer, start) = try Self.transfer(["HTTP/1.1 102 Processing", "", "HTTP/1.1 102 Processing", ""])
        #expect(try #require(Self.end(of: &transfer, from: start) { _ in 0 }).seconds == 30)
    }

    @Test(arguments: [
        head, ["HTTP/1.1 500 No", "Content-Length: 10000", ""], ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", ""],
    ])
    func `a body that drips ends, wanted or not`(head: [String]) throws {
        var (transfer, start) = try Self.transfer(head)
        let end = try #require(Self.end(of: &transfer, from: start) { Int64($0 * 100) })
        #expect(end.limit == .speed)
        #expect(20...21 ~= end.seconds)
    }

    @Test func `a body that falls back to a drip ends`() throws {
        var (transfer, start) = try Self.transfer(Self.head)
        let end = try #require(Self.end(of: &transfer, from: start) { Int64(min($0, 100) * 5_000 + $0) })
        #expect(end.limit == .speed)
        #expect(100...141 ~= end.seconds)
    }

    /// A slow connection of the real world, with the bytes that have arrived after some seconds.
    struct Way: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: @Sendable (Double) -> Int64
    }

    @Test(arguments: [
        Way(testDescription: "GPRS, 20 kbit/s") { Int64($0 * 2_500) },
        Way(testDescription: "EDGE that stops for 14 of 20 seconds") { seconds in
            let (round, rest) = (Int64(seconds) / 20, seconds.truncatingRemainder(dividingBy: 20))
            return round * 90_000 + Int64(max(0, rest - 14) * 15_000)
        },
        Way(testDescription: "a shaped line of 1 kB/s") { Int64($0) * 1_000 },
    ])
    func `a slow way is way enough`(way: Way) throws {
        var (transfer, start) = try Self.transfer(Self.head)
        #expect(Self.end(of: &transfer, from: start, receivedBytes: way.bytes) == nil)
    }

    @Test func `a reader that lags is not slowness of the server`() throws {
        var (transfer, start) = try Self.transfer(Self.head)
        _ = transfer.transition(.pause(.reader), at: start)
        #expect(Self.end(of: &transfer, from: start) { _ in 0 } == nil)
        #expect(transfer.exchange?.isLagging == false)
        // When the reader continues, the transfer has a whole window again.
        _ = transfer.transition(.resume(bodyBytes: 0), at: start + .seconds(3_600))
        let end = try #require(Self.end(of: &transfer, from: start + .seconds(3_600)) { _ in 0 })
        #expect(end.limit == .speed)
        #expect(20...21 ~= end.seconds)
    }

    @Test func `a transfer that brings next to nothing lags until it brings more`() throws {
        var (transfer, start) = try Self.transfer([])
        func look(_ seconds: Double, _ bytes: Int64) -> Bool {
            _ = Self.look(at: &transfer, start + .seconds(seconds), bodyBytes: bytes)
            return transfer.exchange?.isLagging ?? false
        }
        #expect(!look(1.9, 0))
        #expect(look(2.0, 0))
        #expect(look(3.9, 100_000))
        #expect(!look(4.0, 100_000))
        #expect(look(6.0, 101_000))
    }

    // MARK: At an origin

    private static func drips(_ lead: String, _ piece: String) -> FaultyResponse {
        let pieces = (0..<2_000).flatMap { _ -> [FaultyResponse.Step] in
            [.pause(milliseconds: 10), .send(Array(piece.utf8))]
        }
        return FaultyResponse([.send(Array(lead.utf8))] + pieces)
    }

    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    @Test(arguments: [
        ("", "HTTP/1.1 102 Processing\r\n\r\n"), ("HTTP/1.1 200 OK\r\n", "X: y\r\n"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", "x"),
        ("HTTP/1.1 404 No\r\nContent-Length: 9999\r\n\r\n", "x"),
        (chunked, "1\r\nx\r\n"), (chunked + "1;", "x"), (chunked + "1\r\nx\r\n0\r\n", "X: y\r\n"),
    ])
    func `whatever drips is given up`(lead: String, piece: String) async throws {
        let origin = try FaultyOrigin(["/a": Self.drips(lead, piece)])
        var configuration = DownloadActor.Configuration()
        configuration.firstByteTimeout = .milliseconds(300)
        configuration.minimumSpeed = DownloadActor.MinimumSpeed(bytesPerSecond: 10_000, period: .milliseconds(300))
        let error = try await DownloadActor(configuration: configuration).error(at: origin.url("/a"))
        #expect([.tooSlow, .timedOut].contains(error.code), "\(error)")
        await origin.waitForDisconnect(from: "/a")
    }

    @Test func `drips of many addresses leave a place to others`() async throws {
        let drip = FaultyResponse.drip(Array(pattern(2_000)), size: 1, pauseMilliseconds: 20)
        let origins = try (2...12).map { try FaultyOrigin(["/a": drip], address: "127.0.0.\($0)") }
        let healthy = try FaultyOrigin(["/a": .body([1, 2, 3])])
        var configuration = DownloadActor.Configuration()
        // On a busy machine, the default would end the drips before the test does.
        configuration.minimumSpeed = DownloadActor.MinimumSpeed(bytesPerSecond: 1, period: .seconds(300))
        let downloader = DownloadActor(configuration: configuration)
        let drips = origins.flatMap { origin in
            (0..<6).map { number in Task { try await downloader.body(at: origin.url("/a?\(number)")) } }
        }
        await until { await downloader.counters.active >= 56 }
        for number in 0..<5 {
            #expect(try await downloader.body(at: healthy.url("/a?\(number)")) == Data([1, 2, 3]))
        }
        for task in drips { task.cancel() }
        for task in drips { #expect(await task.result.isCancellation) }
    }

    @Test func `those that lag give their places to others`() async throws {
        var configuration = DownloadActor.Configuration()
        configuration.maximumTransfers = 8
        configuration.maximumConnectionsPerHost = 8
        let downloader = DownloadActor(configuration: configuration)
        let silent = try (0..<2).map { _ in try FaultyOrigin(["/a": .silence]) }
        let healthy = try FaultyOrigin(["/a": .body([1, 2, 3])])
        let tasks = silent.flatMap { origin in
            (0..<7).map { number in Task { try await downloader.body(at: origin.url("/a?\(number)")) } }
        }
        await until { await downloader.counters.active >= 8 }
        #expect(try await downloader.body(at: healthy.url("/a")) == Data([1, 2, 3]))
        #expect(await downloader.counters.active > 8)
        for task in tasks { task.cancel() }
        for task in tasks { #expect(await task.result.isCancellation) }
    }

    @Test func `the time for all tries is over in a queue as well`() async throws {
        let origin = try FaultyOrigin(["/door": .silence, "/a": .redirect(to: "/b"), "/b": .body([1])])
        var configuration = DownloadActor.Configuration()
        configuration.maximumTransfers = 1
        configuration.order = .lastInFirstOut
        configuration.timeout = .seconds(600)
        configuration.firstByteTimeout = nil
        configuration.retryPolicy = RetryPolicy(maximumAttempts: 2, initialDelay: .zero)
        let downloader = DownloadActor(configuration: configuration)
        // The first try fails. Another transfer takes the only place before the second try can start.
        let refused = Latch()
        origin.script("/a", FaultyResponse([.wait(refused), .reset]))
        var request = DownloadRequest(url: origin.url("/a"))
        request.totalTimeout = .milliseconds(1_500)
        let waiting = request
        let first = Task { try await downloader.error(for: waiting) }
        await origin.waitForRequests(for: "/a")
        let door = Task {
            try await downloader.response(for: DownloadRequest(url: origin.url("/door")), priority: .high)
        }
        await until { await downloader.counters.started == 2 }
        refused.open()
        let error = try await first.value
        #expect(error.code == .timedOut)
        #expect(error.message.contains("the total timeout"))
        door.cancel()
        #expect(await door.result.isCancellation)
    }
}
