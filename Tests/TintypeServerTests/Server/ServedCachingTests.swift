// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeConcurrency
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// The caches of a server, and the fields about caching.
@Suite(.waiting, .timeLimit(.minutes(10))) struct ServedCachingTests {
    private let modified = "Wed, 21 Oct 2015 07:28:00 GMT"

    private func image(
        _ headers: [(String, String)] = [("Cache-Control", "max-age=3600")]
    ) throws -> [String: FaultyResponse] {
        ["/a": .image(try ServerImages.encoded(.png), headers)]
    }

    // MARK: Fields

    @Test func `an answer has the fields of its image, and the same ones from memory`() async throws {
        let headers = [
            ("Cache-Control", "max-age=3600"), ("Last-Modified", self.modified), ("Set-Cookie", "a=b"),
            ("Expires", "0"),
        ]
        try await ServerFixture.run(try self.image(headers)) { fixture in
            let cold = try await fixture.image("w:50")
            let hot = try await fixture.image("w:50")
            for response in [cold, hot] {
                #expect(response.status == 200)
                #expect(response["Content-Type"] == "image/png")
                #expect(response["Content-Length"] == "\(response.body.count)")
                #expect(response["Cache-Control"] == "max-age=31536000, public")
                #expect(response["ETag"]?.wholeMatch(of: /"[^" ]+"/) != nil)
                #expect(response["Last-Modified"] == self.modified)
                #expect(response["Accept-Ranges"] == "bytes")
                #expect(response["X-Content-Type-Options"] == "nosniff")
                #expect(response["Content-Security-Policy"]?.contains("default-src 'none'") == true)
                #expect(response["Content-Security-Policy"]?.contains("sandbox") == true)
                #expect(response["Content-Disposition"] == "inline; filename=\"a.png\"")
                for name in ["Set-Cookie", "Expires", "Age", "Link", "Access-Control-Allow-Origin"] {
                    #expect(response[name] == nil, "\(name)")
                }
            }
            #expect(cold.body == hot.body && cold["ETag"] == hot["ETag"])
            #expect((cold["X-Cache"], hot["X-Cache"]) == ("network", "memory"))
        }
    }

    @Test func `max-age is the server's lifetime, and a lifetime of zero sends no-cache`() async throws {
        try await ServerFixture.run(try self.image(), change: { $0.caching.lifetime = .seconds(60) }) {
            fixture async throws in
            #expect(try await fixture.image("w:50")["Cache-Control"] == "max-age=60, public")
        }
        try await ServerFixture.run(try self.image(), change: { $0.caching.lifetime = .zero }) { fixture async throws in
            #expect(try await fixture.image("w:50")["Cache-Control"] == "no-cache")
        }
    }

    @Test func `the lifetime of the origin is passed on if the server is set so`() async throws {
        for (headers, expected) in [
            ([("Cache-Control", "max-age=100")], "max-age=100, public"),
            ([("Cache-Control", "max-age=100, s-maxage=50")], "max-age=50, public"),
            ([("Cache-Control", "private, max-age=100")], "max-age=100, private"),
            ([("Cache-Control", "no-cache, max-age=100")], "no-cache"),
            ([("Cache-Control", "no-store, max-age=100")], "no-store"),
            ([], "max-age=31536000, public"),
        ] {
            let change: (inout ImageServer.Configuration) -> Void = { $0.caching.passesOriginLifetime = true }
            try await ServerFixture.run(try self.image(headers), change: change) { fixture async throws in
                #expect(try await fixture.image("w:50")["Cache-Control"] == expected)
                #expect(try await fixture.image("w:50")["Cache-Control"] == expected)
            }
        }
    }

    @Test func `a URL that expires lowers the lifetime, and is refused when it has expired`() async throws {
        try await ServerFixture.run(try self.image()) { fixture in
            let now = Int(Date().timeIntervalSince1970)
            let field = try #require(try await fixture.image("exp:\(now + 1_000)/w:50")["Cache-Control"])
            let seconds = try #require(Int(field.dropFirst("max-age=".count).prefix { $0 != "," }))
            #expect(900...1_000 ~= seconds)
            #expect(try await fixture.image("exp:\(now - 10)/w:50").status == 404)
            // A URL that was served must expire as well.
            let soon = fixture.target("exp:\(Int(Date().timeIntervalSince1970) + 2)/w:50", "/a")
            #expect(try await fixture.response(to: soon).status == 200)
            try await until { try await fixture.response(to: soon).status == 404 }
        }
    }

    @Test(arguments: ["garbage", "Fri, 31 Dec 9999 23:59:59 GMT"])
    func `the server drops a Last-Modified that is not a date or lies in the future`(date: String) async throws {
        let headers = [("Cache-Control", "max-age=3600"), ("Last-Modified", date)]
        try await ServerFixture.run(try self.image(headers)) { fixture in
            for _ in 0..<2 {
                let response = try await fixture.image("w:50", ["If-Modified-Since": date])
                #expect(response.status == 200 && response["Last-Modified"] == nil)
            }
        }
    }

    @Test func `a canonical link and a file name are sent as they are asked for`() async throws {
        try await ServerFixture.run(try self.image(), change: { $0.caching.setsCanonicalLink = true }) { fixture in
            #expect(
                try await fixture.image("w:50")["Link"]
                    == "<\(fixture.origin.url("/a").absoluteString)>; rel=\"canonical\""
            )
            for (options, value) in [
                ("fn:cat", "inline; filename=\"cat.png\""), ("fn:cat/att:1", "attachment; filename=\"cat.png\""),
                ("fn:Li4vY2F0XGE:1", "inline; filename=\".._cat_a.png\""),
                ("fn:L8yBYQ:1", "inline; filename=\"_a.png\"; filename*=UTF-8''_%CC%81a.png"),
                ("fn:Zm9vImJhcg:1", "inline; filename=\"foo_bar.png\"; filename*=UTF-8''foo%22bar.png"),
                ("fn:a%0D%0AX-Evil:b", nil),
            ] as [(String, String?)] {
                let response = try await fixture.image("w:50/\(options)")
                if let value { #expect(response["Content-Disposition"] == value) }
                #expect(response["X-Evil"] == nil)
            }
            // Line breaks in a name that is encoded.
            let evil = try await fixture.image("w:50/fn:YQ0KWC1FdmlsOiBi:1")
            #expect(evil["X-Evil"] == nil)
        }
    }

    // MARK: Conditions, ranges and HEAD

    @Test func `a client with a current image gets 304 without a request to the origin`() async throws {
        let headers = [("Cache-Control", "max-age=3600"), ("Last-Modified", self.modified)]
        try await ServerFixture.run(try self.image(headers)) { fixture in
            let tag = try #require(try await fixture.image("w:50")["ETag"])
            for fields in [
                ["If-None-Match": tag], ["If-None-Match": "\"x\", W/\(tag)"], ["If-None-Match": "*"],
                ["If-Modified-Since": self.modified], ["If-Modified-Since": "Wed, 21 Oct 2026 07:28:00 GMT"],
            ] as [HeaderFields] {
                let response = try await fixture.image("w:50", fields)
                #expect(response.status == 304, "\(fields)")
                #expect(response["ETag"] == tag && response["Cache-Control"] != nil)
                #expect(response["Content-Length"] == nil)
            }
            for fields in [
                ["If-None-Match": "\"x\""], ["If-Modified-Since": "Wed, 21 Oct 2015 07:27:59 GMT"],
                ["If-None-Match": "\"x\"", "If-Modified-Since": self.modified], ["If-Modified-Since": "yesterday"],
            ] as [HeaderFields] {
                #expect(try await fixture.image("w:50", fields).status == 200, "\(fields)")
            }
            #expect(fixture.origin.requestCount(for: "/a") == 1)
            #expect(await fixture.statistics.encode.count == 1)
        }
    }

    @Test func `a condition is answered on a cold server as well, with the same tag in each process`() async throws {
        let tag = try await ServerFixture.run(try self.image()) { try await $0.image("w:50")["ETag"] }
        try await ServerFixture.run(try self.image()) { fixture in
            let target = "w:50"
            let response = try await fixture.image(target, ["If-None-Match": tag ?? ""])
            #expect(response.status == 304)
        }
    }

    @Test func `a date selects no part, because results with other options have the same date`() async throws {
        let headers = [("Cache-Control", "max-age=3600"), ("Last-Modified", self.modified)]
        try await ServerFixture.run(try self.image(headers)) { fixture in
            let response = try await fixture.image("w:50", ["Range": "bytes=0-9", "If-Range": self.modified])
            #expect(response.status == 200 && response["Last-Modified"] == self.modified)
        }
    }

    @Test func `parts of an image are sent`() async throws {
        try await ServerFixture.run(try self.image()) { fixture in
            let whole = try await fixture.image("w:50")
            let (count, tag) = (whole.body.count, try #require(whole["ETag"]))
            for (range, part) in [
                ("bytes=0-9", 0..<10), ("bytes=10-", 10..<count), ("bytes=-7", (count - 7)..<count),
                ("bytes=5-99999999", 5..<count), ("bytes=0-0", 0..<1),
            ] {
                let response = try await fixture.image("w:50", ["Range": range])
                #expect(response.status == 206, "\(range)")
                #expect(response.body == Array(whole.body[part]))
                #expect(response["Content-Range"] == "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(count)")
                #expect(response["ETag"] == tag)
            }
            for range in ["bytes=0-1,3-4", "bytes=5-1", "items=0-1", "bytes=", "bytes=x-1"] {
                #expect(try await fixture.image("w:50", ["Range": range]).status == 200, "\(range)")
            }
            let beyond = try await fixture.image("w:50", ["Range": "bytes=\(count)-"])
            #expect((beyond.status, beyond["Content-Range"]) == (416, "bytes */\(count)"))
            #expect(try await fixture.image("w:50", ["Range": "bytes=0-9", "If-Range": tag]).status == 206)
            #expect(try await fixture.image("w:50", ["Range": "bytes=0-9", "If-Range": "\"x\""]).status == 200)
            #expect(try await fixture.image("w:50", ["Range": "bytes=0-9", "If-Range": "W/\(tag)"]).status == 200)
            // Parts of images that are not in memory.
            let cold = try await fixture.image("w:60", ["Range": "bytes=0-9"])
            #expect(cold.status == 206 && cold.body.count == 10)
        }
    }

    @Test(arguments: [false, true])
    func `HEAD has the fields of GET, and needs no new work`(isWarm: Bool) async throws {
        try await ServerFixture.run(try self.image()) { fixture in
            let target = fixture.target("w:50", "/a")
            if isWarm { _ = try await fixture.response(to: target) }
            let head = try await fixture.response(to: target, method: "HEAD")
            let whole = try await fixture.response(to: target)
            #expect(head.status == 200 && head.body.isEmpty)
            for name in [
                "Content-Length", "Content-Type", "ETag", "Cache-Control", "Accept-Ranges", "Content-Disposition",
            ] {
                #expect(head[name] != nil && head[name] == whole[name], "\(name)")
            }
            #expect(fixture.origin.requestCount(for: "/a") == 1)
            #expect(await fixture.statistics.encode.count == 1)
            #expect(try await fixture.response(to: fixture.target("w:x", "/a"), method: "HEAD").status == 404)
        }
    }

    // MARK: Tiers

    @Test func `an image comes from disk after a restart`() async throws {
        let folder = try TemporaryDirectory()
        let origin = try FaultyOrigin(try self.image())
        var configuration = ServerFixture.configuration(cache: folder)
        let target = "/unsafe/w:50/plain/\(origin.url("/a").absoluteString)"
        var answers: [ClientResponse] = []
        for _ in 0..<2 {
            configuration.listenAddress = "127.0.0.1:0"
            let server = try await ImageServer.start(configuration)
            answers.append(try await ServerClient(to: server.address).response(to: target))
            await server.shutdown()
        }
        #expect(answers.map(\.status) == [200, 200])
        #expect(answers[0].body == answers[1].body)
        #expect(answers[0]["ETag"] == answers[1]["ETag"])
        #expect(answers.map { $0["X-Cache"] } == ["network", "disk"])
        #expect(origin.requestCount(for: "/a") == 1)
    }

    @Test func `an image on disk supports ranges, HEAD and conditions like one in memory`() async throws {
        let folder = try TemporaryDirectory()
        let origin = try FaultyOrigin(["/a": .image(Array(try Fixtures.data("flower.jpg")))])
        let configuration = ServerFixture.configuration(cache: folder)
        func target(_ width: Int) -> String { "/unsafe/w:\(width)/plain/\(origin.url("/a").absoluteString)" }
        let first = try await ImageServer.start(configuration)
        var images: [Int: ClientResponse] = [:]
        for width in 200..<206 {
            images[width] = try await ServerClient(to: first.address).response(to: target(width))
        }
        await first.shutdown()
        let second = try await ImageServer.start(configuration)
        let client = try await ServerClient(to: second.address)
        let (body, tag) = (images[200]?.body ?? [], images[201]?["ETag"] ?? "")
        let part = try await client.response(to: target(200), ["Range": "bytes=100-199"])
        #expect(part.status == 206 && part.body == Array(body[100..<200]))
        #expect(part["Content-Range"] == "bytes 100-199/\(body.count)")
        #expect(try await client.response(to: target(201), ["If-None-Match": tag]).status == 304)
        let head = try await client.response(to: target(202), method: "HEAD")
        #expect(head["Content-Length"] == images[202]?["Content-Length"])
        #expect(try await client.response(to: target(203)).body == images[203]?.body)
        let beyond = try await client.response(to: target(204), ["Range": "bytes=99999999-"])
        #expect(beyond.status == 416 && beyond.body.isEmpty)
        // Two requests in one piece.
        await client.request(target(205))
        await client.request(target(204))
        #expect(try await client.receive().body == images[205]?.body)
        #expect(try await client.receive().body == images[204]?.body)
        #expect(origin.requestCount(for: "/a") == 1)
        #expect(await second.service.loader.statistics().encode.count == 0)
        await second.shutdown()
    }

    @Test func `a thousand identical cold requests make one request to the origin, one decode and one encode`()
        async throws
    {
        let change: (inout ImageServer.Configuration) -> Void = {
            $0.load.queueCount = 2_000
            $0.load.queueTime = .seconds(3_600)
        }
        try await Self.collapse(change: change) { statuses in #expect(statuses == [200: 1_000]) }
    }

    @Test func `identical requests need one place in the queue together`() async throws {
        try await Self.collapse { statuses in #expect(statuses == [200: 1_000]) }
    }

    /// Sends a thousand identical requests before the origin answers, and checks the number of each status.
    private static func collapse(
        change: (inout ImageServer.Configuration) -> Void = { _ in },
        _ check: ([Int: Int]) -> Void
    ) async throws {
        let latch = Latch()
        let response = FaultyResponse.held(by: latch, body: try ServerImages.encoded(.png))
        try await ServerFixture.run(
            ["/a": response],
            change: { configuration in
                // The origin answers after all requests have arrived, which takes minutes on a busy machine.
                configuration.loader.downloads.firstByteTimeout = .seconds(600)
                configuration.loader.downloads.timeout = .seconds(600)
                configuration.loader.downloads.totalTimeout = .seconds(600)
                configuration.load.answerTime = .seconds(600)
                change(&configuration)
            }
        ) { fixture in
            let executor = ThreadExecutor(name: "clients")
            var clients: [ServerClient] = []
            for _ in 0..<1_000 { clients.append(try await ServerClient(to: fixture.server.address, on: executor)) }
            for client in clients { await client.request(fixture.target("w:50", "/a")) }
            await fixture.origin.waitForRequests(for: "/a")
            // All requests have arrived when each waits or was refused.
            let refused = "tintype_http_requests_total{status=\"503\",format=\"none\"}"
            await until {
                guard let text = try? await fixture.response(to: "/metrics").text,
                    let values = try? ScrapedText(text).values
                else { return false }
                return (values["tintype_http_requests_in_progress"] ?? 0) + (values[refused] ?? 0) >= 1_000
            }
            latch.open()
            var statuses: [Int: Int] = [:]
            var bodies: Set<[UInt8]> = []
            for client in clients {
                let response = try await client.receive()
                statuses[response.status, default: 0] += 1
                if response.status == 200 { bodies.insert(response.body) }
            }
            check(statuses)
            #expect(bodies.count == 1)
            #expect(fixture.origin.requestCount(for: "/a") == 1)
            let statistics = await fixture.statistics
            #expect((statistics.decodes, statistics.encode.count) == (1, 1))
            clients = []
            executor.shutdown()
        }
    }

    @Test func `twenty sizes of one source make one request to the origin`() async throws {
        let folder = try TemporaryDirectory()
        try await ServerFixture.run(try self.image(), cache: folder) { fixture in
            try await withThrowingTaskGroup(of: Int.self) { group in
                for width in 10..<30 { group.addTask { try await fixture.image("w:\(width)").status } }
                for try await status in group { #expect(status == 200) }
            }
            #expect(fixture.origin.requestCount(for: "/a") == 1)
        }
    }

    // MARK: Freshness

    @Test func `a missing source is asked for once in its lifetime`() async throws {
        try await ServerFixture.run(["/a": .body([], status: 404)]) { fixture async throws in
            for width in 1..<10 { #expect(try await fixture.image("w:\(width)").status == 404) }
            #expect(fixture.origin.requestCount(for: "/a") == 1)
            fixture.clock.advance(by: 61)
            for width in 1..<10 { #expect(try await fixture.image("w:\(width)").status == 404) }
            #expect(fixture.origin.requestCount(for: "/a") == 2)
        }
    }

    @Test func `a source without an image, and an origin that fails, are remembered as well`() async throws {
        let responses: [String: FaultyResponse] = [
            "/text": .body(Array("text".utf8)), "/failing": .body([], status: 500),
        ]
        try await ServerFixture.run(responses) { fixture in
            for _ in 0..<3 {
                #expect(try await fixture.image("w:5", "/text").status == 422)
                #expect(try await fixture.image("w:5", "/failing").status == 502)
            }
            #expect(fixture.origin.requestCount(for: "/text") == 1)
            #expect(fixture.origin.requestCount(for: "/failing") == 1)
            fixture.clock.advance(by: 6)
            _ = try await fixture.image("w:5", "/failing")
            #expect(fixture.origin.requestCount(for: "/failing") == 2)
        }
    }

    @Test func `an image that is no longer fresh is asked for again, and confirmed`() async throws {
        let png = try ServerImages.encoded(.png)
        let headers = [("Cache-Control", "max-age=60"), ("ETag", "\"v1\"")]
        try await ServerFixture.run(["/a": .image(png, headers)]) { fixture in
            let first = try await fixture.image("w:50")
            fixture.origin.script("/a", .body([], status: 304, headers: headers))
            fixture.clock.advance(by: 600)
            let second = try await fixture.image("w:50")
            #expect(second.body == first.body && second["ETag"] == first["ETag"])
            await fixture.origin.waitForRequests(2, for: "/a")
            #expect(fixture.origin.requestHeads(for: "/a").last?.contains("\"v1\"") == true)
            #expect(await fixture.statistics.encode.count == 1)
        }
    }

    @Test func `an image that is a little stale is served at once, and revalidated behind the answer`() async throws {
        let latch = Latch()
        let png = try ServerImages.encoded(.png)
        try await ServerFixture.run(["/a": .image(png, [("Cache-Control", "max-age=60")])]) { fixture in
            let first = try await fixture.image("w:50")
            fixture.origin.script("/a", .held(by: latch, body: try ServerImages.encoded(.png, width: 100, height: 100)))
            fixture.clock.advance(by: 90)
            // The origin does not answer before the latch opens.
            #expect(try await fixture.image("w:50").body == first.body)
            await fixture.origin.waitForRequests(2, for: "/a")
            latch.open()
            try await until { try (try await fixture.image("w:50")).size() == "50x50" }
        }
    }

    @Test func `a changed source leads to a new image with a new tag`() async throws {
        let headers = [("Cache-Control", "max-age=60"), ("ETag", "\"v1\"")]
        try await ServerFixture.run(["/a": .image(try ServerImages.encoded(.png), headers)]) { fixture in
            let first = try await fixture.image("w:50")
            let other = try ServerImages.jpeg(width: 100, height: 100)
            fixture.origin.script("/a", .image(other, [("Cache-Control", "max-age=60"), ("ETag", "\"v2\"")]))
            fixture.clock.advance(by: 86_400 * 3)
            try await until { try await fixture.image("w:50")["ETag"] != first["ETag"] }
            #expect(try (try await fixture.image("w:50")).size() == "50x50")
        }
    }

    @Test func `an image is served stale while its origin fails`() async throws {
        try await ServerFixture.run(try self.image([("Cache-Control", "max-age=60")])) { fixture in
            let first = try await fixture.image("w:50")
            fixture.clock.advance(by: 3_600)
            for fault in [FaultyResponse.body([], status: 500), .reset] {
                fixture.origin.script("/a", fault)
                let stale = try await fixture.image("w:50")
                #expect(stale.status == 200 && stale.body == first.body)
                fixture.clock.advance(by: 11)
            }
            fixture.origin.script("/a", .body([], status: 404))
            // A source that is gone is gone, and no failure of its origin.
            try await until { try await fixture.image("w:50").status == 404 }
        }
    }

    @Test(arguments: ["stale-if-error=0", "must-revalidate"])
    func `an origin forbids stale images`(directive: String) async throws {
        try await ServerFixture.run(try self.image([("Cache-Control", "max-age=60, \(directive)")])) { fixture in
            #expect(try await fixture.image("w:50").status == 200)
            fixture.clock.advance(by: 3_600)
            fixture.origin.script("/a", .body([], status: 500))
            try await until { try await fixture.image("w:50").status == 502 }
        }
    }

    @Test func `an origin can forbid stale images during revalidation`() async throws {
        let fields = [("Cache-Control", "max-age=60, stale-while-revalidate=0")]
        try await ServerFixture.run(["/a": .image(try ServerImages.encoded(.png), fields)]) { fixture in
            #expect(try await fixture.image("w:50").status == 200)
            fixture.clock.advance(by: 90)
            fixture.origin.script("/a", .image(try ServerImages.encoded(.png, width: 100, height: 100)))
            #expect(try (try await fixture.image("w:50")).size() == "50x50")
        }
    }

    // MARK: Purges

    private static let secret: HeaderFields = ["Authorization": "Bearer wash"]

    @Test func `a purged source is loaded again, and no other one is`() async throws {
        let png = try ServerImages.encoded(.png)
        let responses: [String: FaultyResponse] = ["/x/a": .image(png), "/x/b": .image(png), "/y/a": .image(png)]
        let folder = try TemporaryDirectory()
        try await ServerFixture.run(responses, cache: folder, change: { $0.purgeSecret = "wash" }) {
            fixture async throws in
            func counts() async throws -> [Int] {
                for path in ["/x/a", "/x/b", "/y/a"] {
                    for width in [10, 20] { #expect(try await fixture.image("w:\(width)", path).status == 200) }
                }
                return ["/x/a", "/x/b", "/y/a"].map { fixture.origin.requestCount(for: $0) }
            }
            #expect(try await counts() == [1, 1, 1])
            #expect(try await counts() == [1, 1, 1])
            let source = "source \(fixture.origin.url("/x/a").absoluteString)"
            #expect(try await fixture.post("/purge", Array(source.utf8), Self.secret).status == 200)
            #expect(try await counts() == [2, 1, 1])
            #expect(try await counts() == [2, 1, 1])
            let prefix = "prefix \(fixture.origin.url("/x/").absoluteString)\n\(source)\n"
            #expect(try await fixture.post("/purge", Array(prefix.utf8), Self.secret).status == 200)
            #expect(try await counts() == [3, 2, 1])
            #expect(try await counts() == [3, 2, 1])
        }
    }

    @Test func `a purge shows a changed source, also in another form of its URL`() async throws {
        try await ServerFixture.run(try self.image(), change: { $0.purgeSecret = "wash" }) { fixture in
            let first = try await fixture.image("w:50")
            fixture.origin.script("/a", .image(try ServerImages.encoded(.png, width: 100, height: 100)))
            #expect(try await fixture.image("w:50")["ETag"] == first["ETag"])
            let line = "source \(fixture.origin.url("/a").absoluteString)"
            _ = try await fixture.post("/purge", Array(line.utf8), Self.secret)
            #expect(try (try await fixture.image("w:50")).size() == "50x50")
        }
    }

    @Test func `a purge needs its secret, a valid body, and a server that permits it`() async throws {
        let body = Array("source http://e.example/a".utf8)
        try await ServerFixture.run { fixture async throws in
            for body in [body, []] {
                let response = try await fixture.post("/purge", body, Self.secret)
                #expect(response.status == 403)
                #expect(response.text == "This server does not accept purges: it has no --purge-secret.\n")
            }
        }
        try await ServerFixture.run(change: { $0.purgeSecret = "wash" }) { fixture in
            for text in ["", "Bearer was", "Bearer wash2", "wash", "Basic wash", "Bearer  wash"] {
                #expect(try await fixture.post("/purge", body, ["Authorization": text]).status == 403, "\(text)")
            }
            #expect(try await fixture.post("/purge", body, Self.secret).status == 200)
            for text in ["", "source", "all", "prefix ", "source http://a/\u{0}b", "\n"] {
                let status = try await fixture.post("/purge", Array(text.utf8), Self.secret).status
                #expect(status == 400, "\(text)")
            }
            #expect(try await fixture.response(to: "/purge").status == 405)
        }
    }

    @Test(arguments: [
        ("source http://e.example/a\r\n\r\nall", "Line 3: a line must be `source URL` or `prefix URL`"),
        ("source", "Line 1: there is nothing after source"), ("\nprefix ", "Line 2: there is nothing after prefix"),
        ("source e.example/a", "Line 1: the URL must begin with http://"),
        ("source http://e.example/*", "Line 1: a * has no meaning"),
        ("source http://e.example/a#b", "Line 1: the URL has a fragment"),
        ("source http://e.example/\u{1}", "Line 1: there is a control character"),
        ("source http://e.example/\r\r\n", "Line 1: there is a control character"),
        ("tag a", "Line 1: only servers with --shared take a tag"), ("\r\n", "The body is empty"),
    ])
    func `a wrong line of a purge is named with its number and the reason`(text: String, words: String) async throws {
        try await ServerFixture.run(change: { $0.purgeSecret = "wash" }) { fixture in
            let response = try await fixture.post("/purge", Array(text.utf8), Self.secret)
            #expect(response.status == 400 && response.text.contains(words), "\(response.text)")
        }
    }

    @Test func `the lines of a purge may end with CRLF`() async throws {
        let png = try ServerImages.encoded(.png)
        try await ServerFixture.run(["/a": .image(png), "/b": .image(png)], change: { $0.purgeSecret = "wash" }) {
            fixture async throws in
            for path in ["/a", "/b"] { #expect(try await fixture.image("w:50", path).status == 200) }
            let lines = ["/a", "/b"].map { "source \(fixture.origin.url($0).absoluteString)" }
            let body = lines.joined(separator: "\r\n") + "\r\n"
            let response = try await fixture.post("/purge", Array(body.utf8), Self.secret)
            #expect(response.status == 200 && response.text == "purged\n\(lines[0])\n\(lines[1])\n")
            for path in ["/a", "/b"] {
                #expect(try await fixture.image("w:50", path).status == 200)
                #expect(fixture.origin.requestCount(for: path) == 2)
            }
        }
    }

    @Test func `a purge makes the server forget that a source was missing`() async throws {
        try await ServerFixture.run(["/a": .body([], status: 404)], change: { $0.purgeSecret = "wash" }) { fixture in
            #expect(try await fixture.image("w:50").status == 404)
            fixture.origin.script("/a", .image(try ServerImages.encoded(.png)))
            #expect(try await fixture.image("w:50").status == 404)
            let line = "source \(fixture.origin.url("/a").absoluteString)"
            #expect(try await fixture.post("/purge", Array(line.utf8), Self.secret).status == 200)
            #expect(try await fixture.image("w:50").status == 200)
        }
    }

    @Test func `a source is purged each time, and only in the spelling that its origin receives`() async throws {
        try await ServerFixture.run(try self.image(), change: { $0.purgeSecret = "wash" }) { fixture async throws in
            let url = fixture.origin.url("/a").absoluteString
            for count in 1...3 {
                #expect(try await fixture.image("w:50").status == 200)
                #expect(fixture.origin.requestCount(for: "/a") == count)
                for (spelling, status) in [("\(url)#fragment", 400), (url, 200)] {
                    let line = Array("source \(spelling)".utf8)
                    #expect(try await fixture.post("/purge", line, Self.secret).status == status)
                }
            }
            #expect(try await fixture.image("w:50").status == 200)
            #expect(fixture.origin.requestCount(for: "/a") == 4)
        }
    }

    @Test func `a purge outlives the process`() async throws {
        let folder = try TemporaryDirectory()
        let origin = try FaultyOrigin(try self.image())
        let target = "/unsafe/w:50/plain/\(origin.url("/a").absoluteString)"
        var configuration = ServerFixture.configuration(cache: folder)
        configuration.purgeSecret = "wash"
        let first = try await ImageServer.start(configuration)
        #expect(try await ServerClient(to: first.address).response(to: target).status == 200)
        let fixture = ServerFixture(server: first, origin: origin, clock: TestClock())
        let line = "source \(origin.url("/a").absoluteString)"
        #expect(try await fixture.post("/purge", Array(line.utf8), Self.secret).status == 200)
        await first.shutdown()
        let second = try await ImageServer.start(configuration)
        #expect(try await ServerClient(to: second.address).response(to: target).status == 200)
        #expect(origin.requestCount(for: "/a") == 2)
        await second.shutdown()
    }
}
