// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeConcurrency
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// Answers about the server and about sources, and the page.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ServedServiceTests {
    private func image() throws -> [String: FaultyResponse] { ["/a": .image(try ServerImages.encoded(.png))] }

    // MARK: Health and metrics

    @Test func `the server says that it lives and that it is ready`() async throws {
        try await ServerFixture.run(change: { $0.healthPath = "/alive" }) { fixture in
            for target in ["/health", "/alive", "/health?a", "/health?" + String(repeating: "a", count: 80)] {
                let response = try await fixture.response(to: target)
                #expect(response.status == 200, "\(target)")
                #expect(response.text == "tintype is running\n", "\(target)")
                #expect(response["Cache-Control"] == "no-cache", "\(target)")
                #expect(try await fixture.response(to: target, method: "HEAD").status == 200)
            }
            let ready = try await fixture.response(to: "/ready")
            #expect(ready.status == 200 && ready.text.hasPrefix("ready: 0 of"))
            for target in ["/favicon.ico", "/.well-known/security.txt", "/robots.txt", "/healthy"] {
                #expect(try await fixture.response(to: target).status == 404, "\(target)")
            }
            #expect(try await fixture.response(to: "/").status == 200)
        }
    }

    @Test(arguments: ["/.well-known/alive", "/favicon.ico"])
    func `the health path may be an address that the server answers itself`(path: String) async throws {
        try await ServerFixture.run(change: { $0.healthPath = path }) { fixture in
            let response = try await fixture.response(to: path)
            #expect(response.status == 200 && response.text == "tintype is running\n")
        }
    }

    @Test func `a server that is full or ends is not ready, and refuses at once`() async throws {
        try await ServerFixture.run(["/slow": .silence], change: { $0.load.queueCount = 4 }) { fixture in
            var clients: [ServerClient] = []
            // A client may have three of four places, and waits for each request to take its own.
            for _ in 0..<3 {
                let client = try await ServerClient(to: fixture.server.address)
                await client.request(fixture.target("w:\(clients.count + 1)", "/slow"))
                clients.append(client)
                await until { (try? await fixture.response(to: "/ready").text.contains("\(clients.count) of")) == true }
            }
            let refused = try await fixture.image("w:9", "/slow")
            #expect(refused.status == 503)
            #expect(refused["Retry-After"] == "1" && refused["Cache-Control"] == "no-store")
            for client in clients { await client.close() }
            await until { (try? await fixture.response(to: "/ready").text.hasPrefix("ready: 0 of")) == true }
            fixture.server.service.handler.status.beginEnding()
            #expect(try await fixture.response(to: "/ready").status == 503)
            #expect(try await fixture.response(to: "/health").status == 200)
        }
    }

    @Test func `a server whose lanes keep work waiting is not ready, and a slow origin does not count`() async throws {
        let (decodes, origin) = (Latch(), Latch())
        let responses: [String: FaultyResponse] = [
            "/a": .image(try ServerImages.encoded(.png)), "/b": .image(try ServerImages.encoded(.png)),
            "/slow": .held(by: origin, body: try ServerImages.encoded(.jpeg)),
        ]
        let change: (inout ImageServer.Configuration) -> Void = {
            $0.loader.laneCount = 1
            let held = WatchedCoder(PNGCoder(), willDecode: { decodes.wait() })
            $0.loader.coders = CoderRegistry(coders: [held, JPEGCoder()])
            $0.load.queueTime = .seconds(1)
        }
        try await ServerFixture.run(responses, change: change) { fixture in
            func client(_ path: String) async throws -> ServerClient {
                let client = try await ServerClient(to: fixture.server.address)
                await client.request(fixture.target("w:10", path))
                return client
            }
            let slow = try await client("/slow")
            await fixture.origin.waitForRequests(for: "/slow")
            #expect(try await fixture.response(to: "/ready").text.hasPrefix("ready: 1 of"))
            var clients = [slow]
            for path in ["/a", "/b"] { clients.append(try await client(path)) }
            await until { (try? await fixture.response(to: "/ready").status) == 503 }
            decodes.open()
            origin.open()
            for client in clients { #expect(try await client.receive().status == 200) }
            #expect(try await fixture.response(to: "/ready").text.hasPrefix("ready: 0 of"))
        }
    }

    @Test func `every decode for a request queues in the turn of its client`() async throws {
        let clients = Locked<[WorkClient?]>([])
        let record: @Sendable () -> Void = { clients.withLock { $0.append(WorkClient.current) } }
        let folder = try TemporaryDirectory()
        try folder.write(try ServerImages.encoded(.png), to: "fallback.png")
        let responses: [String: FaultyResponse] = [
            "/a": .image(try ServerImages.encoded(.png)), "/b": .image(try ServerImages.encoded(.png)),
            "/missing": .body([], status: 404),
        ]
        let change: (inout ImageServer.Configuration) -> Void = {
            let watched = WatchedCoder(PNGCoder(), willOpen: record, willDecode: record)
            $0.loader.coders = CoderRegistry(coders: [watched, JPEGCoder()])
            $0.images.fallback = folder.url(of: "fallback.png")
        }
        try await ServerFixture.run(responses, change: change) { fixture async throws in
            for target in [
                fixture.target("w:10", "/a"), "/info" + fixture.target("", "/b"), fixture.target("raw:1", "/b"),
                fixture.target("w:10", "/missing"),
            ] {
                clients.withLock { $0 = [] }
                #expect(try await fixture.response(to: target).status == 200, "\(target)")
                let seen = clients.withLock { $0 }
                #expect(!seen.isEmpty && !seen.contains(nil), "\(target)")
            }
        }
    }

    @Test func `equal requests share a place`() async throws {
        let latch = Latch()
        let responses = ["/slow": FaultyResponse.held(by: latch, body: try ServerImages.encoded(.png))]
        try await ServerFixture.run(responses, change: { $0.load.queueCount = 2 }) { fixture in
            var clients: [ServerClient] = []
            for _ in 0..<8 {
                let client = try await ServerClient(to: fixture.server.address)
                await client.request(fixture.target("w:1", "/slow"))
                clients.append(client)
                await fixture.origin.waitForRequests(for: "/slow")
            }
            let connections = try #require(fixture.server.service.handler.status.connections.withLock { $0 })
            await until { await connections.counters.waitingRequests == 8 }
            #expect(try await fixture.response(to: "/ready").text.hasPrefix("ready: 1 of"))
            latch.open()
            for client in clients { #expect(try await client.receive().status == 200) }
            #expect(fixture.origin.requestCount(for: "/slow") == 1)
        }
    }

    @Test func `a client that has its share of the places gets 429 while others are served`() async throws {
        let latch = Latch()
        let responses = ["/slow": FaultyResponse.held(by: latch, body: try ServerImages.encoded(.png))]
        try await ServerFixture.run(responses, change: { $0.load.queueCount = 8 }) { fixture in
            func client(_ source: String, _ width: Int) async throws -> ServerClient {
                let client = try await ServerClient(to: fixture.server.address, from: source)
                await client.request(fixture.target("w:\(width)", "/slow"))
                return client
            }
            var waiting: [ServerClient] = []
            for (number, source) in ["127.0.0.2", "127.0.0.1", "127.0.0.1"].enumerated() {
                waiting.append(try await client(source, number + 1))
                await until { (try? await fixture.response(to: "/ready").text.contains("\(number + 1) of")) == true }
            }
            let refused = try await client("127.0.0.1", 10).receive()
            #expect((refused.status, refused["Retry-After"]) == (429, "1"))
            waiting.append(try await client("127.0.0.2", 11))
            latch.open()
            for client in waiting { #expect(try await client.receive().status == 200) }
        }
    }

    @Test func `metrics count requests by status, format and tier`() async throws {
        try await ServerFixture.run(try self.image()) { fixture in
            for _ in 0..<3 { _ = try await fixture.image("w:50", suffix: "@jpg") }
            _ = try await fixture.image("w:x")
            let response = try await fixture.response(to: "/metrics")
            #expect(response["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
            let values = try ScrapedText(response.text).values
            #expect(values["tintype_http_requests_total{status=\"200\",format=\"jpeg\"}"] == 3)
            #expect(values["tintype_http_requests_total{status=\"404\",format=\"none\"}"] == 1)
            #expect(values["tintype_http_request_duration_seconds_count{cache=\"memory\"}"] == 2)
            #expect(values["tintype_http_request_duration_seconds_count{cache=\"network\"}"] == 1)
            #expect(values["tintype_http_phase_duration_seconds_count{phase=\"encode\"}"] == 1)
            #expect((values["tintype_http_connections_accepted_total"] ?? 0) >= 5)
            #expect((values["process_resident_memory_bytes"] ?? 0) > 1_000_000)
        }
    }

    @Test func `metrics can have an address of their own`() async throws {
        try await ServerFixture.run(change: { $0.metricsAddress = "127.0.0.1:0" }) { fixture in
            let address = try #require(fixture.server.metricsAddress)
            let client = try await ServerClient(to: address)
            #expect(try await client.response(to: "/metrics").status == 200)
            let post = try await client.response(to: "/metrics", method: "POST")
            #expect(post.status == 405 && post["Allow"] == "GET, HEAD")
            #expect(try await client.response(to: "/unsafe/w:5/plain/x").status == 404)
            #expect(try await fixture.response(to: "/metrics").status == 404)
        }
    }

    @Test func `a valid trace is forwarded to the origin, and an invalid one is not`() async throws {
        for isInformation in [false, true] {
            try await ServerFixture.run(try self.image()) { fixture in
                let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
                let target = (isInformation ? "/info" : "") + fixture.target("w:50", "/a")
                let fields: HeaderFields = ["traceparent": "00-\(trace)-00f067aa0ba902b7-01"]
                #expect(try await fixture.response(to: target, fields).status == 200)
                let head = try #require(fixture.origin.requestHeads(for: "/a").first)
                #expect(head.lowercased().contains("traceparent: 00-\(trace)-"))
                #expect(!head.contains("00f067aa0ba902b7"))
            }
        }
        try await ServerFixture.run(try self.image()) { fixture in
            _ = try await fixture.image("w:50", ["traceparent": "00-forged-00f067aa0ba902b7-01"])
            #expect(fixture.origin.requestHeads(for: "/a").first?.contains("forged") == false)
        }
    }

    // MARK: Sources as they are

    @Test func `the size and the format of a source are answered as JSON`() async throws {
        let responses: [String: FaultyResponse] = [
            "/a": .image(try ServerImages.encoded(.png, .rgba8)),
            "/turned": .image(try ServerImages.jpeg(orientation: 6)),
            "/moving": .image(try ServerImages.animation(.gif)), "/missing": .body([], status: 404),
        ]
        try await ServerFixture.run(responses) { fixture in
            func information(_ path: String) async throws -> Information {
                let response = try await fixture.response(to: "/info" + fixture.target("", path))
                #expect(response.status == 200 && response["Content-Type"] == "application/json")
                return try JSONDecoder().decode(Information.self, from: Data(response.body))
            }
            let still = try await information("/a")
            #expect((still.format, still.width, still.height, still.hasAlpha) == ("png", 200, 100, true))
            #expect(still.bytes == (try ServerImages.encoded(.png, .rgba8)).count)
            let turned = try await information("/turned")
            #expect((turned.format, turned.width, turned.height, turned.orientation) == ("jpeg", 100, 200, 6))
            #expect(try await information("/moving").frames == 3)
            #expect(try await fixture.response(to: "/info" + fixture.target("", "/missing")).status == 404)
            #expect(try await fixture.response(to: "/info/unsafe/w:x/plain/a").status == 404)
            let head = try await fixture.response(to: "/info" + fixture.target("", "/a"), method: "HEAD")
            #expect(head.status == 200 && head["Content-Length"] != "0")
            #expect(head["Cache-Control"] == "max-age=60, public")
        }
        try await ServerFixture.run(responses, change: { $0.allowedOrigin = "*" }) { fixture in
            let end = Int(Date().timeIntervalSince1970) + 50
            let response = try await fixture.response(to: "/info" + fixture.target("exp:\(end)", "/a"))
            #expect(response["Access-Control-Allow-Origin"] == "*")
            let field = try #require(response["Cache-Control"])
            let seconds = try #require(Int(field.dropFirst("max-age=".count).prefix { $0 != "," }))
            #expect(1...50 ~= seconds)
        }
    }

    private struct Information: Decodable {
        let format: String
        let width: Int
        let height: Int
        let orientation: Int
        let frames: Int
        let hasAlpha: Bool
        let bytes: Int
    }

    @Test func `a source is sent as it is if the URL asks for that`() async throws {
        let png = try ServerImages.encoded(.png)
        try await ServerFixture.run(["/a": .image(png)]) { fixture in
            let response = try await fixture.image("raw:1")
            #expect(response.status == 200 && response.body == png)
            #expect(response["Content-Type"] == "image/png")
            #expect(response["X-Content-Type-Options"] == "nosniff")
            #expect(response["Content-Length"] == "\(png.count)")
            let tag = try #require(response["ETag"])
            #expect(try await fixture.image("raw:1", ["If-None-Match": tag]).status == 304)
            let part = try await fixture.image("raw:1", ["Range": "bytes=1-3"])
            #expect(part.status == 206 && part.body == Array(png[1...3]))
            #expect(fixture.origin.requestCount(for: "/a") == 1)
        }
    }

    @Test(arguments: ["raw:1", "skp:png", "rs:fill:4:4/skp:jpg"])
    func `a source that is sent as it is comes from the network first, and then from a cache`(
        options: String
    ) async throws {
        let responses: [String: FaultyResponse] = ["/a": .image(try ServerImages.encoded(.png))]
        for hasDisk in [true, false] {
            try await ServerFixture.run(responses, change: { if !hasDisk { $0.loader.disk = nil } }) { fixture in
                #expect(try await fixture.image(options)["X-Cache"] == "network")
                let metrics = try await fixture.response(to: "/metrics").text
                let count = fixture.origin.requestCount(for: "/a")
                #expect(metrics.contains("tintype_http_phase_duration_seconds_count{phase=\"download\"} \(count)\n"))
                guard hasDisk else { return }
                #expect(["disk", "memory"].contains(try await fixture.image(options)["X-Cache"]))
                #expect(fixture.origin.requestCount(for: "/a") == 1)
            }
        }
    }

    @Test(arguments: ["raw:1", "skp:png", "w:5"])
    func `without a disk cache, a source is loaded once for each answer`(options: String) async throws {
        try await ServerFixture.run(try self.image(), change: { $0.loader.disk = nil }) { fixture async throws in
            #expect(try await fixture.image(options).status == 200)
            #expect(fixture.origin.requestCount(for: "/a") == 1)
        }
    }

    @Test func `a source in a skipped format is sent as it is, unless another format is asked for`() async throws {
        let png = try ServerImages.encoded(.png)
        try await ServerFixture.run(["/a": .image(png)]) { fixture in
            #expect(try await fixture.image("rs:fill:4:4/skp:png").body == png)
            #expect(try await fixture.image("rs:fill:4:4/skp:png", suffix: "@png").body == png)
            let other = try await fixture.image("rs:fill:4:4/skp:png", suffix: "@jpg")
            #expect(other["Content-Type"] == "image/jpeg")
            #expect(try other.size() == "4x4")
            #expect(try (try await fixture.image("rs:fill:4:4/skp:jpg:webp")).size() == "4x4")
        }
        try await ServerFixture.run(["/a": .image(png)], change: { $0.images.skippedFormats = [.png] }) {
            fixture async throws in
            #expect(try await fixture.image("rs:fill:4:4").body == png)
        }
    }

    @Test(
        .enabled(
            if: S3Origin.isInstalled,
            "There is no S3 store (moto); run .ci/setup test, which needs a network once."
        )
    )
    func `objects of a store are sources if the server has one`() async throws {
        let store = try await S3Origin.shared.value
        let change: (inout ImageServer.Configuration) throws -> Void = {
            var settings = ImageServer.Configuration.Sources.S3()
            settings.endpoint = URL(string: "http://127.0.0.1:\(store.port)")
            settings.accessKey = "AKTEST"
            settings.secretKey = "s3cr/et+key"
            $0.sources.s3 = settings
        }
        try await ServerFixture.run(change: change) { fixture async throws in
            // The objects of the store are no images, which only a server that has read them can tell.
            #expect(try await fixture.response(to: "/unsafe/w:5/plain/s3://photos/plain.jpg").status == 422)
            #expect(try await fixture.response(to: "/unsafe/w:5/plain/s3://photos/a%20b/c%20d.jpg").status == 422)
            #expect(try await fixture.response(to: "/unsafe/w:5/plain/s3://photos/missing.jpg").status == 404)
            #expect(try await fixture.response(to: "/unsafe/w:5/plain/s3://photos/../versions/v.jpg").status == 404)
        }
        try await ServerFixture.run { fixture async throws in
            #expect(try await fixture.response(to: "/unsafe/w:5/plain/s3://photos/plain.jpg").status == 404)
        }
    }

    // MARK: Page

    private static let own: HeaderFields = ["Content-Type": "image/png"]

    @Test func `a server with its page signs paths and takes uploads, for its own page only`() async throws {
        let png = try ServerImages.encoded(.png)
        let change: (inout ImageServer.Configuration) throws -> Void = {
            $0.showsPage = true
            $0.addresses.keys = [try SignatureKey(key: "00ff10", salt: "00")]
        }
        try await ServerFixture.run(change: change) { fixture in
            let page = try await fixture.response(to: "/")
            #expect(page.status == 200 && page["Content-Type"] == "text/html; charset=utf-8")
            #expect(page["Content-Security-Policy"] != nil && page["X-Frame-Options"] == "DENY")

            let upload = try await fixture.post("/upload", png, Self.own)
            #expect(upload.status == 200)
            let source = try JSONDecoder().decode([String: String].self, from: Data(upload.body))["source"]
            let path = "/w:50/plain/\(try #require(source))"
            #expect(try await fixture.response(to: "/unsafe\(path)").status == 403)
            let signed = try await fixture.post("/sign", Array(path.utf8))
            #expect(signed.status == 200)
            let response = try await fixture.response(to: signed.text)
            #expect(response.status == 200)
            #expect(try response.size() == "50x25")

            for site in ["cross-site", "same-site", "evil"] {
                let fields: HeaderFields = ["Sec-Fetch-Site": site, "Content-Type": "image/png"]
                #expect(try await fixture.post("/sign", Array(path.utf8), fields).status == 403)
                #expect(try await fixture.post("/upload", png, fields).status == 403)
            }
            for fields in [["Origin": "http://evil.example"], ["Origin": "null"]] as [HeaderFields] {
                #expect(try await fixture.post("/sign", Array(path.utf8), fields).status == 403)
            }
            for body in ["", "w:50", "/a\r\nX: b", "/a b\u{0}"] {
                #expect(try await fixture.post("/sign", Array(body.utf8)).status == 400, "\(body)")
            }
            #expect(
                try await fixture.post("/upload", Array("<html>".utf8), ["Content-Type": "text/plain"]).status == 422
            )
            #expect(try await fixture.response(to: "/sign").status == 405)
            let form = try await fixture.response(to: "/?url=http%3A%2F%2Fe.example%2Fa.png&w=50")
            #expect(form.status == 303)
            #expect(form["Location"]?.hasSuffix("/plain/http%3A%2F%2Fe.example%2Fa.png") == true)
        }
    }

    @Test func `the page of a server with keys does not answer to the name of another site`() async throws {
        let change: (inout ImageServer.Configuration) throws -> Void = {
            $0.showsPage = true
            $0.addresses.keys = [try SignatureKey(key: "00ff10", salt: "00")]
        }
        try await ServerFixture.run(change: change) { fixture in
            let client = try await ServerClient(to: fixture.server.address)
            await client.send("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            #expect(try await client.receive()["Content-Type"] != "text/html; charset=utf-8")
            await client.send("POST /sign HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n/a")
            #expect(try await client.receive().status == 403)
        }
    }

    @Test func `a server without its page signs nothing and takes no upload`() async throws {
        try await ServerFixture.run { fixture async throws in
            #expect(try await fixture.response(to: "/").text == "tintype\n")
            #expect(try await fixture.post("/sign", []).status == 405)
            #expect(try await fixture.post("/sign", Array("/a".utf8)).status == 405)
            #expect(try await fixture.post("/upload", [1, 2, 3]).status == 405)
            #expect(try await fixture.response(to: "/unsafe/plain/upload:///abc").status == 404)
        }
    }

    @Test func `an upload that is too large is refused`() async throws {
        try await ServerFixture.run(change: { $0.showsPage = true }) { fixture in
            let client = try await ServerClient(to: fixture.server.address)
            let fields = "Host: 127.0.0.1\r\nContent-Type: image/png\r\nContent-Length: 999999999\r\n"
            await client.send("POST /upload HTTP/1.1\r\n\(fields)\r\n")
            #expect(try await client.receive().status == 413)
        }
    }

    // MARK: Without connections

    @Test func `a program with an HTTP server of its own gets the same answers`() async throws {
        try await ServerFixture.run(try self.image()) { fixture in
            let service = fixture.server.service
            let target = fixture.target("w:50", "/a")
            let own = await service.response(to: target, headers: [:])
            let sent = try await fixture.response(to: target)
            #expect(own.status == 200 && Array(own.body) == sent.body)
            #expect(own.headers["ETag"] == sent["ETag"] && own.headers["Content-Type"] == "image/png")
            let tag = try #require(own.headers["ETag"])
            #expect(await service.response(to: target, headers: ["If-None-Match": tag]).status == 304)
            #expect(await service.response(to: "/health", headers: [:]).status == 200)
            // The program that received the request checks its host.
            #expect(await service.response(to: target, headers: ["Host": "other.example"]).status == 200)
            for target in ["", "no-slash", "/a b", "/a\r\nX: y"] {
                #expect(await service.response(to: target, headers: [:]).status >= 400, "\(target)")
            }
            let odd = await service.response(to: target, headers: ["X-A": "b\r\nHost: c", "Content-Length": "5"])
            #expect(odd.status == 400 || odd.status == 200)
        }
    }
}
