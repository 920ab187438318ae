// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct TimeoutTests {
    private let downloader = DownloadActor()

    @Test(arguments: [FaultyResponse.silence, .stall(declaredLength: 100), .stall(declaredLength: 100, after: [1, 2])])
    func `a server that falls silent is given up`(response: FaultyResponse) async throws {
        let origin = try FaultyOrigin(["/a": response])
        let request = DownloadRequest(url: origin.url("/a"), timeout: .milliseconds(100))
        let error = try await self.downloader.error(for: request)
        #expect(error.code == .timedOut)
        await origin.waitForDisconnect(from: "/a")
    }

    @Test(arguments: [Duration.zero, .seconds(-1)])
    func `no time at all means the default`(time: Duration) async throws {
        let origin = try FaultyOrigin(["/a": .drip([1, 2], size: 1, pauseMilliseconds: 5)])
        var request = DownloadRequest(url: origin.url("/a"), timeout: time, connectTimeout: time)
        request.firstByteTimeout = time
        request.totalTimeout = time
        #expect(try await self.downloader.response(for: request).body == Data([1, 2]))
        var configuration = DownloadActor.Configuration()
        configuration.timeout = time
        configuration.connectTimeout = time
        configuration.firstByteTimeout = time
        configuration.totalTimeout = time
        let downloader = DownloadActor(configuration: configuration)
        #expect(try await downloader.body(at: origin.url("/a")) == Data([1, 2]))
    }

    @Test func `no time at all in a request means that of the configuration`() async throws {
        let origin = try FaultyOrigin(["/a": .silence])
        var configuration = DownloadActor.Configuration()
        configuration.timeout = .milliseconds(100)
        let request = DownloadRequest(url: origin.url("/a"), timeout: .zero)
        #expect(try await DownloadActor(configuration: configuration).error(for: request).code == .timedOut)
    }

    @Test func `a slow body that goes on is not given up`() async throws {
        // The body takes longer than the timeout, and the timeout is longer than a busy machine stalls.
        let content = Array(pattern(50))
        let origin = try FaultyOrigin(["/a": .drip(content, size: 1, pauseMilliseconds: 100)])
        let request = DownloadRequest(url: origin.url("/a"), timeout: .seconds(4))
        #expect(try await self.downloader.response(for: request).body == Data(content))
    }

    @Test func `waiting for a turn does not count`() async throws {
        var configuration = DownloadActor.Configuration()
        configuration.maximumTransfers = 1
        let downloader = DownloadActor(configuration: configuration)
        let origin = try FaultyOrigin([
            "/a": .drip(Array(pattern(50)), size: 1, pauseMilliseconds: 120), "/b": .body([1]),
        ])
        async let first = downloader.body(at: origin.url("/a"))
        await origin.waitForRequests(for: "/a")
        // The timeout is shorter than the wait for a turn, but long enough for an answer on a busy machine.
        let request = DownloadRequest(url: origin.url("/b"), timeout: .seconds(4))
        #expect(try await downloader.response(for: request).body == Data([1]))
        _ = try await first
    }

    @Test func `a host that does not take connections is given up`() async throws {
        let origin = try FaultyOrigin(acceptsConnections: false)
        // The kernel accepts one or two connections itself before the others have to wait.
        try await withThrowingTaskGroup(of: DownloadError.Code.self) { group in
            for number in 0..<6 {
                group.addTask {
                    let request = DownloadRequest(
                        url: origin.url("/a?\(number)"),
                        timeout: .milliseconds(300),
                        connectTimeout: .milliseconds(100)
                    )
                    let error = try await self.downloader.error(for: request)
                    if error.underlyingError is DownloadError.CurlError {
                        #expect(error.message.contains("Connecting"))
                    }
                    return error.code
                }
            }
            for try await code in group { #expect(code == .timedOut) }
        }
    }

    @Test func `answers that arrive while the process is stopped are not too late`() async throws {
        let (count, timeout) = (20, Duration.seconds(3))
        let (firstDoor, lastDoor) = (Latch(), Latch())
        let sent = (0..<count).map { _ in Latch() }
        var responses: [String: FaultyResponse] = [:]
        for (index, latch) in sent.enumerated() {
            responses["/first/\(index)"] = .held(by: firstDoor, body: [1])
            let answer = FaultyResponse.held(by: lastDoor, body: [UInt8](repeating: 1, count: 10_000))
            responses["/last/\(index)"] = FaultyResponse(answer.steps + [.signal(latch)])
        }
        let origin = try FaultyOrigin(responses)
        var configuration = DownloadActor.Configuration()
        configuration.maximumConnectionsPerHost = count
        let downloader = DownloadActor(configuration: configuration)
        // For new connections libcurl has a timer of its own, which reads their sockets.
        for (path, door, timeout) in [("/first/", firstDoor, .seconds(60)), ("/last/", lastDoor, timeout)] {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<count {
                    let request = DownloadRequest(url: origin.url("\(path)\(index)"), timeout: timeout)
                    group.addTask { _ = try await downloader.response(for: request) }
                }
                for index in 0..<count { await origin.waitForRequests(for: "\(path)\(index)") }
                if path == "/first/" {
                    door.open()
                } else {
                    // The thread of the transfers does nothing else, as if the process were stopped.
                    await downloader.occupy {
                        door.open()
                        for latch in sent { latch.wait() }
                        let end = ContinuousClock.now + timeout
                        while .now < end {}
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func `a transfer that times out leaves others alone`() async throws {
        let door = Latch()
        let origin = try FaultyOrigin(["/a": .silence, "/b": .held(by: door, body: [1])])
        async let patient = self.downloader.body(at: origin.url("/b"))
        await origin.waitForRequests(for: "/b")
        let request = DownloadRequest(url: origin.url("/a"), timeout: .milliseconds(50))
        #expect(try await self.downloader.error(for: request).code == .timedOut)
        door.open()
        #expect(try await patient == Data([1]))
    }
}

extension DownloadActor {
    /// Runs `body` on the thread of the transfers.
    fileprivate func occupy(_ body: @Sendable () -> Void) { body() }
}
