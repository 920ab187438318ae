// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

/// Checks that bytes after a response never pass for the response to another request.
@Suite(.waiting, .timeLimit(.minutes(5)))
struct SurplusTests {
    struct Surplus: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Sends a response with the body "one" or without a body, and opens the last latch after sending the surplus.
        let steps: @Sendable (_ surplus: [UInt8], _ isIdle: Latch, _ isSent: Latch) -> [FaultyResponse.Step]
        let method: DownloadRequest.Method
        let acceptableStatusCodes: StatusCodes?

        init(
            _ name: String,
            method: DownloadRequest.Method = .get,
            status: StatusCodes? = nil,
            _ steps: @escaping @Sendable ([UInt8], Latch, Latch) -> [FaultyResponse.Step]
        ) {
            self.testDescription = name
            self.method = method
            self.acceptableStatusCodes = status
            self.steps = steps
        }
    }

    private static let wrong = Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong".utf8)
    private static let whole = Array("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none".utf8)
    private static let chunked = Array(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n".utf8
    )
    private static let empty = Array("HTTP/1.1 204 No Content\r\n\r\n".utf8)
    private static let unmodified = Array("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n".utf8)
    private static let head = Array("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n".utf8)
    /// A long surplus, of which libcurl drops as much as it happens to have read.
    private static let long = wrong + (0..<20_000).flatMap { _ in wrong }

    /// Sends the surplus together with the answer.
    private static func atOnce(
        _ answer: [UInt8],
        _ surplus: [UInt8]
    )
        -> @Sendable ([UInt8], Latch, Latch) ->
        [FaultyResponse.Step]
    {
        { _, _, isSent in [.send(answer + surplus), .signal(isSent)] }
    }

    /// Sends the surplus when the connection has been idle for a while.
    private static func later(_ answer: [UInt8]) -> @Sendable ([UInt8], Latch, Latch) -> [FaultyResponse.Step] {
        { surplus, isIdle, isSent in [.send(answer), .wait(isIdle), .send(surplus), .signal(isSent)] }
    }

    /// Sends half of the surplus at once, which libcurl drops, and the rest when the connection is idle.
    private static func inHalves(_ answer: [UInt8]) -> @Sendable ([UInt8], Latch, Latch) -> [FaultyResponse.Step] {
        { surplus, isIdle, isSent in
            [.send(answer + surplus[..<8]), .wait(isIdle), .send(Array(surplus[8...])), .signal(isSent)]
        }
    }

    private static let table: [Surplus] = [
        Surplus("behind a body", atOnce(whole, wrong)),
        Surplus("much of it behind a body", atOnce(whole, long)),
        Surplus("later, behind a body", later(whole)),
        Surplus("behind the last chunk", atOnce(chunked, wrong)),
        Surplus("much of it behind the last chunk", atOnce(chunked, long)),
        Surplus("in halves behind the last chunk", inHalves(chunked)),
        Surplus("later, behind the last chunk", later(chunked)),
        Surplus("behind a response without content", status: [204], atOnce(empty, wrong)),
        Surplus("in halves behind a response without content", status: [204], inHalves(empty)),
        Surplus("later, behind a response without content", status: [204], later(empty)),
        Surplus("behind an unmodified response", status: [304], atOnce(unmodified, long)),
        Surplus("in halves behind an unmodified response", status: [304], inHalves(unmodified)),
        Surplus("a body for a request without one", method: .head, atOnce(head, Array("one".utf8) + wrong)),
        Surplus("later, a body for a request without one", method: .head, later(head)),
        Surplus(
            "a second final response behind an informational one",
            atOnce(Array("HTTP/1.1 103 Early Hints\r\n\r\n".utf8) + whole, wrong)
        ),
    ]

    private func downloader(_ origin: FaultyOrigin) -> DownloadActor {
        var configuration = DownloadActor.Configuration()
        configuration.timeout = .seconds(60)
        if let path = origin.authorityPath { configuration.tls.authorities = .file(path: path) }
        return DownloadActor(configuration: configuration)
    }

    private func text(_ downloader: DownloadActor, _ url: URL) async throws -> String {
        String(decoding: try await downloader.body(at: url), as: UTF8.self)
    }

    @Test(arguments: table, [false, true])
    func `surplus answers nothing`(surplus: Surplus, usesTLS: Bool) async throws {
        let (isIdle, isSent) = (Latch(), Latch())
        let origin = try FaultyOrigin(
            [
                "/1": FaultyResponse(surplus.steps(Self.wrong, isIdle, isSent)),
                "/2": .body(Array("two".utf8)), "/3": .body(Array("three".utf8)),
            ],
            usesTLS: usesTLS
        )
        let downloader = self.downloader(origin)
        var request = DownloadRequest(url: origin.url("/1"), method: surplus.method)
        request.acceptableStatusCodes = surplus.acceptableStatusCodes
        if surplus.acceptableStatusCodes == [204] {
            #expect(try await downloader.error(for: request).code == .emptyBody)
        } else {
            let isBodyless = surplus.method == .head || surplus.acceptableStatusCodes != nil
            let body = try await downloader.response(for: request).body
            #expect(body == (isBodyless ? Data() : Data("one".utf8)))
        }
        isIdle.open()
        // Bytes sent within one machine have arrived. A client that has disconnected cannot read them either.
        await until { isSent.isOpen || origin.disconnectCount(from: "/1") > 0 }
        #expect(try await self.text(downloader, origin.url("/2")) == "two")
        #expect(try await self.text(downloader, origin.url("/3")) == "three")
        #expect(origin.connectionCount == 2)
    }

    @Test func `surplus that comes again and again costs no request`() async throws {
        let origin = try FaultyOrigin(["/a": FaultyResponse([.send(Self.whole + Self.wrong)])])
        let downloader = self.downloader(origin)
        for _ in 0..<20 { #expect(try await self.text(downloader, origin.url("/a")) == "one") }
        #expect(origin.requestCount(for: "/a") == 20)
    }

    @Test func `an idle connection that brings surplus is closed at once`() async throws {
        let isIdle = Latch()
        let origin = try FaultyOrigin([
            "/a": FaultyResponse([.send(Self.whole), .wait(isIdle), .send(Self.wrong), .stall])
        ])
        let downloader = self.downloader(origin)
        #expect(try await self.text(downloader, origin.url("/a")) == "one")
        isIdle.open()
        await origin.waitForDisconnect(from: "/a")
    }

    @Test func `surplus between the choice of a connection and the request is seen`() throws {
        var pair: [CInt] = [0, 0]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &pair) == 0)
        defer { for descriptor in pair { close(descriptor) } }
        let poll = try SocketPoll()
        poll.didOpen(pair[0])
        #expect(poll.claim(localPort: 0, remotePort: 0, remoteAddress: nil, isNew: true, by: 1) == pair[0])
        poll.release(pair[0], by: 1)
        #expect(poll.claim(localPort: 0, remotePort: 0, remoteAddress: nil, isNew: false, by: 2) == pair[0])
        poll.release(pair[0], by: 2)
        _ = write(pair[1], "H", 1)
        #expect(poll.claim(localPort: 0, remotePort: 0, remoteAddress: nil, isNew: false, by: 3) == nil)
        poll.willClose(pair[0])
        #expect(poll.claim(localPort: 0, remotePort: 0, remoteAddress: nil, isNew: false, by: 4) == nil)
    }

    @Test func `what a paused transfer has not read yet is no surplus`() async throws {
        let content = Array(pattern(3_000_000))
        let origin = try FaultyOrigin(["/a": .body(content)])
        let downloader = self.downloader(origin)
        let stream = try await downloader.stream(for: DownloadRequest(url: origin.url("/a")), bufferSize: 1_000)
        var body = Data()
        for try await chunk in stream {
            body += chunk
            if body.count < 1_000_000 { for _ in 0..<50 { await Task.yield() } }
        }
        #expect(body == Data(content))
        #expect(origin.connectionCount == 1)
    }

    // MARK: Healthy connections

    @Test(arguments: [false, true])
    func `a connection without surplus is used again and again`(usesTLS: Bool) async throws {
        let origin = try FaultyOrigin(
            [
                "/a": .body(Array("one".utf8)), "/b": .chunked([Array("two".utf8)]),
                "/c": .body(Array("none".utf8), status: 404), "/d": FaultyResponse([.send(Self.empty)]),
                "/e": FaultyResponse([.send(Self.head)]),
            ],
            usesTLS: usesTLS
        )
        let downloader = self.downloader(origin)
        for _ in 0..<20 {
            #expect(try await self.text(downloader, origin.url("/a")) == "one")
            #expect(try await self.text(downloader, origin.url("/b")) == "two")
            #expect(try await downloader.error(at: origin.url("/c")).status == 404)
            #expect(try await downloader.error(at: origin.url("/d")).code == .emptyBody)
            _ = try await downloader.response(for: DownloadRequest(url: origin.url("/e"), method: .head))
        }
        #expect(origin.connectionCount == 1)
    }

    // MARK: Ends without an alert

    @Test func `over TLS, a body without a length is whole only after an alert`() async throws {
        let head = FaultyResponse.head(200, [("Connection", "close")])
        let half = FaultyResponse.Step.send(Array("half".utf8))
        let origin = try FaultyOrigin(
            ["/cut": FaultyResponse([head, half, .cutOff]), "/closed": FaultyResponse([head, half, .close])],
            usesTLS: true
        )
        let downloader = self.downloader(origin)
        for _ in 0..<3 {
            let error = try await downloader.error(at: origin.url("/cut"))
            #expect(error.code == .bodyCutShort)
            #expect(error.status == 200)
            #expect(try await self.text(downloader, origin.url("/closed")) == "half")
        }
    }

    @Test func `a body that says its end needs no alert, and neither does an idle connection`() async throws {
        let chunked = FaultyResponse.Step.send(Self.chunked)
        let origin = try FaultyOrigin(
            [
                "/length": FaultyResponse([.send(Self.whole), .cutOff]), "/chunks": FaultyResponse([chunked, .cutOff]),
                "/short": FaultyResponse([.send(Self.head + Array("on".utf8)), .cutOff]),
            ],
            usesTLS: true
        )
        let downloader = self.downloader(origin)
        for _ in 0..<5 {
            #expect(try await self.text(downloader, origin.url("/length")) == "one")
            #expect(try await self.text(downloader, origin.url("/chunks")) == "one")
            let error = try await downloader.error(at: origin.url("/short"))
            #expect(error.code == .bodyCutShort, "\(error)")
        }
    }

    @Test func `session tickets before an answer are no surplus`() async throws {
        let origin = try FaultyOrigin(
            ["/a": FaultyResponse([.sendTickets(3), .send(Self.whole)])],
            usesTLS: true
        )
        let downloader = self.downloader(origin)
        for _ in 0..<10 { #expect(try await self.text(downloader, origin.url("/a")) == "one") }
        #expect(origin.connectionCount == 1)
    }

    @Test func `one HTTP2 connection serves request after request`() async throws {
        let origin = try TLSOrigin()
        var configuration = DownloadActor.Configuration()
        configuration.tls.authorities = .file(path: origin.authorityPath)
        let downloader = DownloadActor(configuration: configuration)
        for number in 0..<20 {
            let response = try await downloader.response(for: DownloadRequest(url: origin.url("/\(number)")))
            #expect(response.metrics.httpVersion == .http2)
            #expect(response.metrics.connectionReused == (number > 0))
        }
    }
}
