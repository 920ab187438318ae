// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

@Suite(.waiting, .timeLimit(.minutes(5)))
struct RetryTests {
    private static let date = Date(timeIntervalSince1970: 784_111_777)

    private func downloader(_ policy: RetryPolicy) -> DownloadActor {
        var configuration = DownloadActor.Configuration()
        configuration.retryPolicy = policy
        let environment = EngineEnvironment(date: { Self.date }, random: { 0 })
        return DownloadActor(configuration: configuration, hooks: .init(), environment: environment, loopDidEnd: nil)
    }

    @Test(arguments: [
        FaultyResponse.reset, FaultyResponse([.close]), .lying(declaredLength: 100, body: [1, 2]),
        .body([], status: 500), .body([], status: 503, headers: [("Retry-After", "0")]), .body([], status: 408),
        .body([], status: 429, headers: [("Retry-After", "Sun, 06 Nov 1994 08:49:36 GMT")]),
    ])
    func `what another try may mend is tried again`(fault: FaultyResponse) async throws {
        let origin = try FaultyOrigin(["/a": .body([7, 8])])
        origin.script("/a", sequence: [fault, fault])
        let downloader = self.downloader(RetryPolicy(maximumAttempts: 3))
        let response = try await downloader.response(for: DownloadRequest(url: origin.url("/a")))
        #expect(response.body == Data([7, 8]))
        #expect(response.metrics.retryCount >= 2)
        #expect(await downloader.counters.retried >= 2)
    }

    @Test(arguments: [
        (FaultyResponse.body([], status: 404), DownloadError.Code.badStatus),
        (.body([], status: 501), .badStatus),
        (.body([], status: 503, headers: [("Retry-After", "61")]), .badStatus),
        (.garbage, .invalidResponse),
        (.stall(declaredLength: 1 << 40), .bodyTooLarge),
        (.redirect(to: "ftp://example.org/"), .unsafeRedirect),
    ])
    func `what another try cannot mend is not`(fault: FaultyResponse, code: DownloadError.Code) async throws {
        let origin = try FaultyOrigin(["/a": fault])
        let downloader = self.downloader(RetryPolicy(maximumAttempts: 5))
        #expect(try await downloader.error(at: origin.url("/a")).code == code)
        #expect(origin.requestCount(for: "/a") == 1)
    }

    @Test(arguments: [Duration.seconds(Int64.max), .seconds(1), .zero, .seconds(-1)], [1, 6, 31, 1_000_000])
    func `a delay stays below the limit, whatever the first one is`(initial: Duration, attempts: Int) throws {
        for maximum in [Duration.seconds(Int64.max), .seconds(10), .zero] {
            let policy = RetryPolicy(maximumAttempts: .max, initialDelay: initial, maximumDelay: maximum)
            let error = DownloadError(code: .connectionLost, message: "It broke.")
            let delay = try #require(policy.delay(after: error, attempts: attempts, date: Self.date, random: 1))
            // The comparison uses `Double`, because such long durations are rounded.
            #expect(delay / .seconds(1) <= maximum / .seconds(1))
            if attempts == 1 { #expect(delay / .seconds(1) == min(initial, maximum) / .seconds(1)) }
        }
    }

    @Test func `six transfers of a host, and 64 in all, run at once unless it is said otherwise`() {
        let configuration = DownloadActor.Configuration()
        #expect((configuration.maximumConnectionsPerHost, configuration.maximumTransfers) == (6, 64))
    }

    @Test func `a bad certificate is not tried again`() async throws {
        let origin = try TLSOrigin(.selfSigned)
        let downloader = self.downloader(RetryPolicy(maximumAttempts: 5))
        #expect(try await downloader.error(at: origin.url()).code == .tlsFailed)
        #expect(await downloader.counters.retried == 0)
    }

    @Test func `after the last try the error is that of the last`() async throws {
        let origin = try FaultyOrigin(["/a": .body([], status: 503)])
        let downloader = self.downloader(RetryPolicy(maximumAttempts: 3))
        #expect(try await downloader.error(at: origin.url("/a")).status == 503)
        #expect(origin.requestCount(for: "/a") == 3)
    }

    @Test func `a wait before a try ends when the last caller leaves`() async throws {
        let origin = try FaultyOrigin(["/a": .body([], status: 503, headers: [("Retry-After", "59")])])
        let downloader = self.downloader(RetryPolicy(maximumAttempts: 3))
        let task = Task { try await downloader.body(at: origin.url("/a")) }
        await until { await downloader.counters.retried >= 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(origin.requestCount(for: "/a") == 1)
    }

    @Test func `a try goes back to the first address`() async throws {
        let origin = try FaultyOrigin(["/a": .redirect(to: "/b"), "/b": .body([7])])
        origin.script("/b", sequence: [.body([], status: 500)])
        let downloader = self.downloader(RetryPolicy(maximumAttempts: 2))
        let response = try await downloader.response(for: DownloadRequest(url: origin.url("/a")))
        #expect(response.body == Data([7]))
        #expect(response.metrics.redirectCount == 1)
        #expect(origin.requestCount(for: "/a") == 2)
    }

    @Test func `a total time that a wait would pass ends the download`() async throws {
        let origin = try FaultyOrigin(["/a": .body([], status: 503, headers: [("Retry-After", "30")])])
        var request = DownloadRequest(url: origin.url("/a"))
        request.totalTimeout = .seconds(10)
        let downloader = self.downloader(RetryPolicy(maximumAttempts: 3))
        #expect(try await downloader.error(for: request).status == 503)
    }

    // MARK: The policy

    private func error(_ status: Int, _ headers: HeaderFields = [:]) -> DownloadError {
        DownloadError(code: .badStatus, message: "", status: status, headers: headers)
    }

    @Test func `waits double up to a limit, by chance between nothing and all of it`() {
        let policy = RetryPolicy(maximumAttempts: 100, initialDelay: .seconds(1), maximumDelay: .seconds(5))
        let delays = [1, 2, 3, 4, 64, 99].map {
            policy.delay(after: self.error(503), attempts: $0, date: Self.date, random: 1)
        }
        #expect(delays == [.seconds(1), .seconds(2), .seconds(4), .seconds(5), .seconds(5), .seconds(5)])
        #expect(policy.delay(after: self.error(503), attempts: 3, date: Self.date, random: 0.25) == .seconds(1))
        #expect(policy.delay(after: self.error(503), attempts: 3, date: Self.date, random: 0) == .zero)
        #expect(policy.delay(after: self.error(503), attempts: 100, date: Self.date, random: 0) == nil)
    }

    @Test(arguments: [
        ("7", Duration.seconds(7)), ("0", .seconds(1)), ("60", .seconds(60)), ("61", nil),
        ("99999999999999999999999", nil), ("Sun, 06 Nov 1994 08:49:47 GMT", .seconds(10)),
        ("Sunday, 06-Nov-94 08:49:47 GMT", .seconds(10)), ("Sun Nov  6 08:49:47 1994", .seconds(10)),
        ("Sun, 06 Nov 1994 08:00:00 GMT", .seconds(1)), ("Sun, 06 Nov 2094 08:00:00 GMT", nil),
        ("soon", .seconds(1)), ("-3", .seconds(1)), ("", .seconds(1)), ("1e9", .seconds(1)),
    ])
    func `Retry-After is honoured, within its limit`(value: String, delay: Duration?) {
        let policy = RetryPolicy(maximumAttempts: 3, initialDelay: .seconds(1))
        let error = self.error(503, ["Retry-After": value])
        #expect(policy.delay(after: error, attempts: 1, date: Self.date, random: 1) == delay)
    }

    /// Takes tries from the budget until it is empty, at most 20, and returns their number.
    private func tries(_ budget: inout RetryBudget, now: LoopInstant) -> Int {
        (0..<20).count { _ in budget.takeTry(now: now) }
    }

    @Test func `the budget is a share of the requests and some each second`() {
        let start = LoopInstant.now
        var budget = RetryBudget(RetryPolicy.Budget(ratio: 0.1, minimumPerSecond: 0), now: start)
        #expect(self.tries(&budget, now: start) == 0)
        for _ in 0..<20 { budget.didStartRequest() }
        #expect(self.tries(&budget, now: start) == 2)
        var steady = RetryBudget(RetryPolicy.Budget(ratio: 0, minimumPerSecond: 1), now: start)
        #expect(self.tries(&steady, now: start) == 10)
        #expect(self.tries(&steady, now: start + .seconds(1)) == 1)
    }

    @Test func `a server in trouble is not buried`() async throws {
        let origin = try FaultyOrigin(["/a": .body([], status: 503)])
        let budget = RetryPolicy.Budget(ratio: 0.1, minimumPerSecond: 0)
        let downloader = self.downloader(RetryPolicy(maximumAttempts: 10, budget: budget))
        for number in 0..<50 { _ = try await downloader.error(at: origin.url("/a?\(number)")) }
        #expect(origin.requestCount(for: "/a") == 55)
    }
}
