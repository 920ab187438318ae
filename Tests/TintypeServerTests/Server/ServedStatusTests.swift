// SPDX-License-Identifier: Apache-2.0

import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// The statuses of answers to failed loads, and the fallback image.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ServedStatusTests {
    /// A fault of an origin, and the answer to a request for its image.
    struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let response: FaultyResponse
        let status: Int
        let cacheControl: String

        init(_ name: String, _ response: FaultyResponse, _ status: Int, _ cacheControl: String = "no-store") {
            self.testDescription = name
            self.response = response
            self.status = status
            self.cacheControl = cacheControl
        }
    }

    private static let minute = "max-age=60, public"
    private static let cut = (try? ServerImages.jpeg(width: 400, height: 300)) ?? []

    static let faults: [Fault] = [
        Fault("404", .body([1], status: 404), 404, minute),
        Fault("410", .body([1], status: 410), 410, minute),
        Fault("403", .body([1], status: 403), 403),
        Fault("401", .body([1], status: 401), 401),
        Fault("407", .body([1], status: 407), 502),
        Fault("421", .body([1], status: 421), 502),
        Fault("429", .body([1], status: 429), 503),
        Fault("499", .body([1], status: 499), 502),
        Fault("500", .body([1], status: 500), 502),
        Fault("503", .body([1], status: 503), 502),
        Fault("599", .body([1], status: 599), 502),
        Fault("an empty body", .empty, 502),
        Fault(
            "HTML",
            .body(Array("<html><script>alert(1)</script></html>".utf8), headers: [("Content-Type", "text/html")]),
            422,
            minute
        ),
        Fault("SVG", .body(Array("<svg xmlns=\"http://www.w3.org/2000/svg\"><script/></svg>".utf8)), 422, minute),
        Fault("noise", .body((0..<999).map { UInt8(truncatingIfNeeded: $0 &* 89) }), 422, minute),
        Fault("a body cut short", .lying(declaredLength: 100_000, body: Self.cut), 422, minute),
        Fault("an image cut short", .body(Array(Self.cut.prefix(Self.cut.count / 2))), 422, minute),
        Fault("a reset", .reset, 502),
        Fault("no HTTP", .garbage, 502),
        Fault("a part", .body(Self.cut, status: 206, headers: [("Content-Range", "bytes 0-9/5000")]), 502),
        Fault("a redirect to itself", .redirect(to: "/a"), 502),
        Fault("a redirect to nowhere", .redirect(to: ""), 502),
        Fault("a redirect to a file", .redirect(to: "file:///etc/passwd"), 502),
        Fault("no gzip", .body(Self.cut, headers: [("Content-Encoding", "gzip")]), 502),
    ]

    @Test(arguments: faults)
    func `each failure of an origin has its status, and its lifetime in clients`(fault: Fault) async throws {
        try await ServerFixture.run(["/a": fault.response]) { fixture in
            let response = try await fixture.image("w:10")
            #expect(response.status == fault.status)
            #expect(response["Cache-Control"] == fault.cacheControl)
            #expect(response["Content-Type"] == "text/plain; charset=utf-8")
            #expect(response["X-Content-Type-Options"] == "nosniff")
            #expect(response["X-Request-ID"] != nil)
            #expect((response["Retry-After"] != nil) == (fault.status == 503))
            // No answer repeats a body, an address or a path of the origin.
            #expect(!response.text.contains("script") && !response.text.contains("127.0.0.1"))
            #expect(response.text.utf8.count < 100)
        }
    }

    @Test(arguments: [
        ("7", "7"), ("0", "1"), ("99999999999999", "600"), ("banana", "1"), ("-1", "1"),
        ("Fri, 31 Dec 9999 23:59:59 GMT", "600"),
    ])
    func `the server passes on the Retry-After of an origin in seconds, from 1 to 600`(
        value: String,
        expected: String
    ) async throws {
        let response = FaultyResponse.body([1], status: 429, headers: [("Retry-After", value)])
        try await ServerFixture.run(["/a": response]) { fixture async throws in
            #expect(try await fixture.image("w:10")["Retry-After"] == expected)
        }
    }

    @Test func `an origin that cannot be reached is 502`() async throws {
        try await ServerFixture.run { fixture in
            let port = try LoopbackSocket.freePort()
            for host in ["127.0.0.1:\(port)", "no-such-host.invalid"] {
                let response = try await fixture.response(to: "/unsafe/plain/http://\(host)/a.png")
                #expect(response.status == 502, "\(host)")
                #expect(response["Cache-Control"] == "no-store")
            }
        }
    }

    @Test func `an origin that is too slow is 504`() async throws {
        let change: (inout ImageServer.Configuration) -> Void = {
            $0.loader.downloads.firstByteTimeout = .milliseconds(200)
        }
        try await ServerFixture.run(["/a": .silence], change: change) { fixture async throws in
            #expect(try await fixture.image("w:10").status == 504)
        }
    }

    @Test func `an answer that takes too long is 503, and the load of the image ends`() async throws {
        try await ServerFixture.run(["/a": .silence], change: { $0.load.answerTime = .milliseconds(300) }) { fixture in
            let response = try await fixture.image("w:10")
            #expect(response.status == 503)
            #expect(response["Retry-After"] != nil && response["Cache-Control"] == "no-store")
            // On a busy machine, the time may be over before the origin is asked.
            if fixture.origin.requestCount(for: "/a") > 0 { await fixture.origin.waitForDisconnect(from: "/a") }
        }
    }

    @Test func `an image that took too long is refused at once for a while`() async throws {
        let decodes = Latch()
        let change: (inout ImageServer.Configuration) -> Void = {
            $0.load.answerTime = .milliseconds(600)
            $0.loader.coders = CoderRegistry(coders: [WatchedCoder(PNGCoder(), willDecode: { decodes.wait() })])
        }
        let responses = ["/a": FaultyResponse.image(try ServerImages.encoded(.png))]
        try await ServerFixture.run(responses, change: change) { fixture in
            defer { decodes.open() }
            await until { (try? await fixture.image("w:10").text) == "The image took too long a moment ago.\n" }
            let count = fixture.origin.requestCount(for: "/a")
            let refused = try await fixture.image("w:10")
            #expect(refused.status == 503)
            // `Retry-After` is the rest of the ten seconds.
            let seconds = try #require(refused["Retry-After"].flatMap { Int($0) })
            #expect(2...10 ~= seconds)
            // Other spellings of the URL name the same image.
            let target = fixture.target("w:10", "/a")
            for spelling in [target + "?1", "/" + target, target.replacing("w:10", with: "w%3A10")] {
                let client = try await ServerClient(to: fixture.server.address)
                #expect(try await client.response(to: spelling).text == refused.text, "\(spelling)")
            }
            #expect(fixture.origin.requestCount(for: "/a") == count)
        }
    }

    @Test func `an image is refused too if the client that requested it first has left`() async throws {
        let (begun, decodes) = (Latch(), Latch())
        let coder = WatchedCoder(PNGCoder()) {
            begun.open()
            decodes.wait()
        }
        let change: (inout ImageServer.Configuration) -> Void = {
            $0.load.answerTime = .seconds(1)
            $0.loader.coders = CoderRegistry(coders: [coder])
        }
        let responses = ["/a": FaultyResponse.image(try ServerImages.encoded(.png))]
        try await ServerFixture.run(responses, change: change) { fixture in
            defer { decodes.open() }
            let leader = try await ServerClient(to: fixture.server.address)
            let follower = try await ServerClient(to: fixture.server.address)
            await leader.request(fixture.target("w:10", "/a"))
            await until { begun.isOpen }
            await follower.request(fixture.target("w:10", "/a"))
            let connections = try #require(fixture.server.service.handler.status.connections.withLock { $0 })
            // On a busy machine, the time of the first request may be over before the second one comes.
            await until {
                let waitingCount = await connections.counters.waitingRequests
                let joinedCount = await fixture.statistics.encoded.joined
                return joinedCount == 1 || waitingCount == 0
            }
            await leader.close()
            #expect(try await follower.receive().status == 503)
            #expect(try await fixture.image("w:10").text == "The image took too long a moment ago.\n")
        }
    }

    @Test func `an image whose source did not arrive in time is not refused`() async throws {
        let change: (inout ImageServer.Configuration) -> Void = { $0.load.answerTime = .milliseconds(600) }
        try await ServerFixture.run(["/a": .silence], change: change) { fixture async throws in
            // The first request is over before the third one comes.
            for _ in 0..<3 {
                #expect(try await fixture.image("w:10").text != "The image took too long a moment ago.\n")
            }
        }
    }

    @Test func `a client that leaves ends the load of its image`() async throws {
        try await ServerFixture.run(["/a": .silence]) { fixture in
            let client = try await ServerClient(to: fixture.server.address)
            await client.request(fixture.target("w:10", "/a"))
            await fixture.origin.waitForRequests(for: "/a")
            await client.close()
            await fixture.origin.waitForDisconnect(from: "/a")
        }
    }

    @Test func `a client that leaves does not take the image from others who wait for it`() async throws {
        let latch = Latch()
        try await ServerFixture.run(["/a": .held(by: latch, body: try ServerImages.encoded(.png))]) { fixture in
            let (leader, follower) = (
                try await ServerClient(to: fixture.server.address), try await ServerClient(to: fixture.server.address)
            )
            await leader.request(fixture.target("w:10", "/a"))
            await fixture.origin.waitForRequests(for: "/a")
            await follower.request(fixture.target("w:10", "/a"))
            let connections = try #require(fixture.server.service.handler.status.connections.withLock { $0 })
            await until { await connections.counters.waitingRequests == 2 }
            // The second request must have joined the load, not only have been read.
            await until { await fixture.statistics.encoded.joined == 1 }
            await leader.close()
            await until { await connections.counters.waitingRequests == 1 }
            latch.open()
            #expect(try await follower.receive().status == 200)
            #expect(fixture.origin.requestCount(for: "/a") == 1)
        }
    }

    @Test func `errors are explained only if the server is set so`() async throws {
        let responses = ["/a": FaultyResponse.body(Array("nonsense".utf8))]
        try await ServerFixture.run(responses) { fixture async throws in
            #expect(try await fixture.image("w:10").text == "Invalid source image\n")
            #expect(try await fixture.image("w:x").text == "Invalid URL\n")
        }
        try await ServerFixture.run(responses, change: { $0.explainsErrors = true }) { fixture in
            #expect(try await fixture.image("w:10").text != "Invalid source image\n")
            let response = try await fixture.image("blorp:1")
            #expect(response.status == 404 && response.text.contains("blorp"))
            let paid = try await fixture.image("autoquality:1")
            #expect(paid.status == 404 || paid.status == 422)
            #expect(paid.text.contains("autoquality"))
        }
    }

    // MARK: Fallback

    private func withFallback(
        change: @escaping (inout ImageServer.Configuration) -> Void = { _ in },
        _ body: (ServerFixture) async throws -> Void
    ) async throws {
        let folder = try TemporaryDirectory()
        try folder.write(try ServerImages.encoded(.png), to: "fallback.png")
        let responses: [String: FaultyResponse] = [
            "/missing": .body([], status: 404), "/broken": .body(Array("nonsense".utf8)),
            "/failing": .body([], status: 500),
            "/good": .image(try ServerImages.encoded(.png, width: 30, height: 30)),
        ]
        try await ServerFixture.run(
            responses,
            change: {
                $0.images.fallback = folder.url(of: "fallback.png")
                change(&$0)
            },
            body
        )
    }

    @Test func `the fallback image replaces an error, in the requested size and format`() async throws {
        try await self.withFallback { fixture in
            for path in ["/missing", "/broken", "/failing", "/unknown"] {
                let response = try await fixture.image("rs:fit:50:50", path, suffix: "@webp")
                #expect(response.status == 200)
                #expect(response["Content-Type"] == "image/webp")
                #expect(response["X-Image-Fallback"] == "1")
                #expect(try response.size() == "50x25")
                #expect(response["Last-Modified"] == nil)
            }
            let skipping = try await fixture.image("skp:jpg/rs:fit:50:50", "/missing", suffix: "@webp")
            #expect(skipping.status == 200 && skipping["X-Image-Fallback"] == "1")
            #expect(try skipping.size() == "50x25")
            // The client wants these very bytes.
            #expect(try await fixture.image("raw:1", "/missing").status == 404)
            let good = try await fixture.image("w:10", "/good")
            #expect(good.status == 200 && good["X-Image-Fallback"] == nil)
            #expect(try good.size() == "10x10")
        }
    }

    @Test func `the fallback image can have the status of the error, or another one, and a lifetime of its own`()
        async throws
    {
        try await self.withFallback(change: { $0.images.fallbackStatus = nil }) { fixture async throws in
            #expect(try await fixture.image("w:10", "/missing").status == 404)
            #expect(try await fixture.image("w:10", "/failing").status == 502)
        }
        let change: (inout ImageServer.Configuration) -> Void = {
            $0.images.fallbackStatus = 203
            $0.images.fallbackLifetime = .seconds(30)
        }
        try await self.withFallback(change: change) { fixture in
            let response = try await fixture.image("w:10", "/missing")
            #expect(response.status == 203)
            #expect(response["Cache-Control"] == "max-age=30, public")
        }
    }

    @Test func `there is no fallback for an invalid URL`() async throws {
        try await self.withFallback { fixture async throws in
            #expect(try await fixture.image("w:x", "/good").status == 404)
            #expect(try await fixture.image("", "/good", suffix: "@avif").status == 422)
        }
    }

    @Test func `the fallback does not take the place of an image that its origin has later`() async throws {
        try await self.withFallback { fixture in
            #expect(try await fixture.image("w:10", "/missing")["X-Image-Fallback"] == "1")
            fixture.origin.script("/missing", .image(try ServerImages.encoded(.png, width: 30, height: 30)))
            fixture.clock.advance(by: 61)
            let response = try await fixture.image("w:10", "/missing")
            #expect(response["X-Image-Fallback"] == nil)
            #expect(try response.size() == "10x10")
        }
    }
}
