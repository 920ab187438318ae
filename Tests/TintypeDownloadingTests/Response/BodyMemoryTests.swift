// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

/// Checks that bodies stay within the memory budget that they share.
@Suite(.waiting, .timeLimit(.minutes(5)))
struct BodyMemoryTests {
    private static let size = 1_500_000

    /// Creates a downloader whose patience never ends during a test, unless the test sets it.
    private func makeDownloader(
        memory: Int,
        patience: Duration = .seconds(600),
        hooks: DownloadHooks = DownloadHooks(),
        _ change: (inout DownloadActor.Configuration) -> Void = { _ in }
    ) -> DownloadActor {
        var configuration = DownloadActor.Configuration()
        configuration.timeout = .seconds(60)
        configuration.bodyMemory = memory
        configuration.memoryPatience = patience
        configuration.maximumConnectionsPerHost = 64
        change(&configuration)
        return DownloadActor(
            configuration: configuration,
            hooks: hooks,
            loopDidEnd: nil
        )
    }

    /// Returns a claim on the whole body budget of `downloader`, like that of a loader that has yet to decode.
    private func takeAll(of downloader: DownloadActor) -> ByteClaim {
        let claim = ByteClaim(downloader.bodyBudget)
        claim.set(downloader.bodyBudget.limit)
        claim.hold()
        return claim
    }

    @Test(arguments: [false, true])
    func `many bodies keep to the memory that they may take`(overTLS: Bool) async throws {
        let content = pattern(Self.size)
        let origin = try NginxOrigin(files: ["a": content], servesTLS: overTLS)
        let limit = 4_000_000
        let downloader = self.makeDownloader(memory: limit)
        try await withThrowingTaskGroup(of: Data.self) { group in
            for number in 0..<24 {
                var request = DownloadRequest(url: overTLS ? origin.tlsURL("/a?\(number)") : origin.url("/a?\(number)"))
                request.allowsInvalidCertificates = true
                group.addTask { [request] in try await downloader.response(for: request).body }
            }
            for try await body in group { #expect(body == content) }
        }
        let counters = await downloader.counters
        #expect(counters.peakBodyBytes <= limit + Self.size)
        #expect(counters.memoryWaits > 0)
        #expect(counters.bodyBytes == 0)
        #expect(counters.failed == 0 && counters.retried == 0)
    }

    @Test func `bodies of no declared length that each need what others have all end`() async throws {
        let content = pattern(Self.size)
        let origin = try FaultyOrigin()
        for number in 0..<8 { origin.script("/\(number)", .undeclared(Array(content))) }
        let downloader = self.makeDownloader(memory: 2_000_000)
        try await withThrowingTaskGroup(of: Data.self) { group in
            for number in 0..<8 { group.addTask { try await downloader.body(at: origin.url("/\(number)")) } }
            for try await body in group { #expect(body == content) }
        }
        let counters = await downloader.counters
        // The buffer of a body grows by doubling.
        #expect(counters.peakBodyBytes <= 2_000_000 + 2 * Self.size)
        #expect(counters.bodyBytes == 0)
    }

    @Test func `compressed bodies are asked for again rather than paused`() async throws {
        let gzip = try #require(Data(base64Encoded: StreamingTests.gzippedZeros))
        let origin = try FaultyOrigin()
        for number in 0..<12 {
            origin.script("/\(number)", .body(Array(gzip), headers: [("Content-Encoding", "gzip")]))
        }
        let downloader = self.makeDownloader(memory: 400_000)
        try await withThrowingTaskGroup(of: Data.self) { group in
            for number in 0..<12 { group.addTask { try await downloader.body(at: origin.url("/\(number)")) } }
            for try await body in group { #expect(body == Data(count: 300_000)) }
        }
        let counters = await downloader.counters
        // One more body than the budget holds, and its decoder.
        #expect(counters.peakBodyBytes <= 400_000 + 600_000 + (128 << 10))
        #expect(counters.succeeded == 12)
        #expect(counters.bodyBytes == 0)
    }

    /// The first bytes of a body whose content coding has the largest possible window.
    struct Windowed: Sendable {
        let coding: String
        let window: Int
        let start: [UInt8]

        /// Whether this build can decode the body.
        var isKnown: Bool { ContentCoding(self.coding)?.missingTrait == nil }

        /// The window, and a block that repeats one byte 100,000 times (RFC 8878, 3.1.1).
        static let zstandard = Self(
            coding: "zstd",
            window: 8 << 20,
            start: [0x28, 0xB5, 0x2F, 0xFD, 0, 13 << 3] + [0x02, 0x35, 0x0C, 7]
        )
        /// The window and an uncompressed block of 16 MiB (RFC 7932, 9.1 and 9.2).
        static let brotli = Self(coding: "br", window: 16 << 20, start: [0xCF, 0xFF, 0xFF, 0xFF] + [7, 7, 7])
    }

    @Test(arguments: [Windowed.zstandard, .brotli].filter(\.isKnown))
    func `the window of a content coding counts for as long as it is open`(coded: Windowed) async throws {
        let head = FaultyResponse.head(200, [("Content-Encoding", coded.coding), ("Transfer-Encoding", "chunked")])
        let response = FaultyResponse([head, .send(FaultyResponse.chunk(coded.start)), .stall])
        let origin = try FaultyOrigin(["/body": response, "/stream": response])
        let downloader = self.makeDownloader(memory: 100 << 20)
        let body = Task { try await downloader.body(at: origin.url("/body")) }
        await until { await downloader.counters.bodyBytes >= coded.window }
        #expect(await downloader.counters.bodyBytes < coded.window + (1 << 20))
        let stream = try await downloader.stream(for: DownloadRequest(url: origin.url("/stream")))
        await until { await downloader.counters.bodyBytes >= 2 * coded.window }
        await downloader.cancelAll()
        await #expect(throws: CancellationError.self) { try await body.value }
        await #expect(throws: CancellationError.self) { for try await _ in stream {} }
        #expect(await downloader.counters.bodyBytes == 0)
    }

    @Test(.enabled(if: Windowed.zstandard.isKnown))
    func `bodies with large windows keep to the memory that they may take`() async throws {
        let coded = Windowed.zstandard
        let origin = try FaultyOrigin()
        // The body ends with an empty block.
        let response = FaultyResponse.body(coded.start + [1, 0, 0], headers: [("Content-Encoding", coded.coding)])
        for number in 0..<16 { origin.script("/\(number)", response) }
        let limit = 2 * coded.window
        let downloader = self.makeDownloader(memory: limit)
        let claim = self.takeAll(of: downloader)
        let tasks = (0..<16).map { number in Task { try await downloader.body(at: origin.url("/\(number)")) } }
        await until { await downloader.counters.memoryWaits == tasks.count }
        claim.giveBack()
        for task in tasks { #expect(try await task.value == Data(repeating: 7, count: 100_000)) }
        let counters = await downloader.counters
        // The limit, one more window, and the rest of a body's memory.
        #expect(counters.peakBodyBytes <= limit + coded.window + (1 << 20))
        #expect(counters.bodyBytes == 0)
    }

    @Test(arguments: [1, 100_000])
    func `a body that is larger than the memory for all goes on alone`(memory: Int) async throws {
        let content = pattern(5_000_000)
        let origin = try FaultyOrigin(["/a": .body(Array(content))])
        #expect(try await self.makeDownloader(memory: memory).body(at: origin.url("/a")) == content)
    }

    @Test func `when bytes come back, the most urgent goes on first, and then the oldest`() async throws {
        let origin = try FaultyOrigin()
        let downloader = self.makeDownloader(memory: Self.size)
        let claim = self.takeAll(of: downloader)
        let events = downloader.events()
        let priorities: [DownloadPriority] = [.low, .normal, .veryHigh, .normal]
        var tasks: [Task<DownloadResponse, any Error>] = []
        for (number, priority) in priorities.enumerated() {
            origin.script("/\(number)", .body(Array(pattern(Self.size))))
            tasks.append(
                Task {
                    try await downloader.response(
                        for: DownloadRequest(url: origin.url("/\(number)")),
                        priority: priority
                    )
                }
            )
            await until { await downloader.counters.memoryWaits == number + 1 }
        }
        claim.giveBack()
        for task in tasks { #expect(try await task.value.body.count == Self.size) }
        var order: [String] = []
        for await event in events {
            if case .finished = event.kind { order.append(event.url.path) }
            if order.count == priorities.count { break }
        }
        #expect(order == ["/2", "/1", "/3", "/0"])
        #expect(await downloader.counters.peakBodyBytes == Self.size)
    }

    @Test func `a transfer that waits for memory is neither slow nor late`() async throws {
        let content = pattern(Self.size)
        let origin = try FaultyOrigin(["/a": .body(Array(content))])
        let downloader = self.makeDownloader(memory: Self.size) {
            $0.minimumSpeed = DownloadActor.MinimumSpeed(bytesPerSecond: 1_000, period: .seconds(1))
        }
        let claim = self.takeAll(of: downloader)
        let task = Task {
            var request = DownloadRequest(url: origin.url("/a"), timeout: .seconds(2))
            request.totalTimeout = .seconds(2)
            return try await downloader.response(for: request).body
        }
        await until { await downloader.counters.memoryWaits == 1 }
        // Keep the loop busy for longer than all limits.
        let start = ContinuousClock.now
        while .now - start < .milliseconds(2_100) { _ = await downloader.counters }
        #expect(await downloader.counters.failed == 0)
        claim.giveBack()
        #expect(try await task.value == content)
    }

    @Test func `a transfer that waits for memory is cancelled like any other`() async throws {
        let origin = try FaultyOrigin(["/a": .body(Array(pattern(Self.size)))])
        let downloader = self.makeDownloader(memory: Self.size)
        let claim = self.takeAll(of: downloader)
        let task = Task { try await downloader.body(at: origin.url("/a")) }
        await until { await downloader.counters.memoryWaits == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await origin.waitForDisconnect(from: "/a")
        claim.giveBack()
        #expect(await downloader.counters.bodyBytes == 0)
    }

    @Test func `bytes that are never given back stop no transfer for good`() async throws {
        let content = pattern(Self.size)
        let origin = try FaultyOrigin(["/a": .body(Array(content)), "/b": .body(Array(content))])
        let downloader = self.makeDownloader(memory: Self.size, patience: .milliseconds(1))
        let claim = self.takeAll(of: downloader)
        async let first = downloader.body(at: origin.url("/a"))
        async let second = downloader.body(at: origin.url("/b"))
        #expect(try await first == content)
        #expect(try await second == content)
        claim.giveBack()
    }

    @Test func `a transfer that may take more and falls silent does not hold up the others`() async throws {
        let content = pattern(Self.size)
        let origin = try FaultyOrigin([
            "/silent": .stall(declaredLength: Self.size, after: [1]), "/a": .body(Array(content)),
        ])
        let downloader = self.makeDownloader(memory: 1, patience: .milliseconds(1))
        let silent = Task { try await downloader.body(at: origin.url("/silent")) }
        await until { await downloader.counters.bodyBytes > 0 }
        #expect(try await downloader.body(at: origin.url("/a")) == content)
        silent.cancel()
        _ = await silent.result
    }

    @Test func `a hook holds no bytes, so that it can load others`() async throws {
        let content = pattern(Self.size)
        let origin = try FaultyOrigin(["/a": .body(Array(content)), "/key": .body(Array(content))])
        let own = Locked<DownloadActor?>(nil)
        let downloader = self.makeDownloader(
            memory: Self.size,
            hooks: DownloadHooks(modifyResponse: { response in
                if response.url.path == "/a" {
                    let downloader = own.withLock { $0 }
                    _ = try await downloader?.body(at: origin.url("/key"))
                }
                return response
            })
        )
        own.withLock { $0 = downloader }
        #expect(try await downloader.body(at: origin.url("/a")) == content)
        own.withLock { $0 = nil }
        #expect(await downloader.counters.bodyBytes == 0)
    }

    @Test func `a body that is shown while it comes counts twice`() async throws {
        let origin = try FaultyOrigin(["/a": .body(Array(pattern(Self.size)))])
        let downloader = self.makeDownloader(memory: 100 << 20)
        _ = try await downloader.response(
            for: DownloadRequest(url: origin.url("/a")),
            bytesObserver: { _ in }
        )
        #expect(await downloader.counters.peakBodyBytes == 2 * Self.size)
    }

    @Test func `files count, and wait until there is room`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(pattern(1_000), to: "a")
        let downloader = self.makeDownloader(memory: 1_000)
        let claim = self.takeAll(of: downloader)
        let file = folder.url(of: "a")
        let task = Task { try await downloader.body(at: file) }
        await until { downloader.bodyBudget.waiterCount == 1 }
        claim.giveBack()
        #expect(try await task.value.count == 1_000)
        #expect(await downloader.counters.peakBodyBytes == 1_000)
        #expect(await downloader.counters.bodyBytes == 0)
    }
}
