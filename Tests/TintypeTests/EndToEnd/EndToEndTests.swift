// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// A loader with the real downloader over sockets, for cases that a scripted origin cannot show.
@Suite(.waiting, .timeLimit(.minutes(5))) struct EndToEndTests {
    let fixture: LoaderFixture

    init() throws {
        self.fixture = try LoaderFixture()
    }

    // MARK: nginx

    @Test(arguments: [
        ("flower.jpg", "jpeg", 2_268, 1_512), ("flower.webp", "webp", 1_134, 756), ("kodak-3.png", "png", 768, 512),
    ])
    func `an image comes from the network, then from memory, then from disk`(
        name: String,
        format: String,
        width: Int,
        height: Int
    ) async throws {
        let origin = try NginxOrigin(files: [name: try Fixtures.data(name)])
        let request = ImageRequest(url: origin.url("/\(name)"), options: [.waitForStore])
        let loader = self.fixture.makeLoader()
        for source in [LoadSource.network, .memory] {
            let response = try await loader.response(for: request)
            #expect(response.source == source)
            #expect((response.image.width, response.image.height) == (width, height))
            #expect(response.metadata.formatName == format)
            #expect(response.storeError == nil)
        }
        let restarted = self.fixture.makeLoader()
        #expect(try await restarted.response(for: request).source == .disk)
        #expect(try origin.requestCount(for: "/\(name)") == 1)
    }

    @Test func `what is cached is validated by the tag of the server, and replaced by what it has now`() async throws {
        let origin = try NginxOrigin(files: ["a": Data(try makePNG(width: 10))])
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: origin.url("/a"), options: [.waitForStore], cachePolicy: .revalidate)
        for revalidation in [nil, Revalidation.notModified] {
            #expect(try await loader.response(for: request).revalidation == revalidation)
        }
        let requests = try origin.requests()
        #expect(requests.map(\.status) == [200, 304])
        #expect(requests.last?.ifNoneMatch != nil)
        try origin.write(try makePNG(width: 300), to: "a")
        #expect(try await loader.response(for: request).revalidation == .modified)
        #expect(try await self.fixture.makeLoader().image(for: ImageRequest(url: request.url)).width == 300)
    }

    @Test func `what is loaded over TLS from a server that cannot be verified is kept apart`() async throws {
        let origin = try NginxOrigin(files: ["a": Data(try makePNG())], servesTLS: true)
        let loader = self.fixture.makeLoader()
        let unverified = ImageRequest(
            url: origin.tlsURL("/a"),
            options: [.allowInvalidCertificates, .waitForStore]
        )
        #expect(try await loader.image(for: unverified).width == 8)
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: origin.tlsURL("/a")) }
        #expect(error?.code == .tlsFailed)
    }

    // MARK: Ends of loads

    @Test func `the last caller that leaves closes the connection`() async throws {
        let latch = Latch()
        let origin = try FaultyOrigin(["/a": .held(by: latch, body: try makePNG())])
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: origin.url("/a"))
        let tasks = (0..<10).map { _ in Task { try await loader.image(for: request) } }
        await until { await loader.waiterCount == 10 }
        await origin.waitForRequests(for: "/a")
        for task in tasks { task.cancel() }
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        await origin.waitForDisconnect(from: "/a")
        #expect(await loader.loadCount == 0)
        latch.open()
        #expect(try await loader.image(for: request).width == 8)
        #expect(origin.requestCount(for: "/a") == 2)
    }

    @Test func `a reader of events that leaves closes the connection`() async throws {
        let origin = try FaultyOrigin(["/a": .stall(declaredLength: 1_000, after: [1, 2, 3])])
        let loader = self.fixture.makeLoader()
        for try await event in loader.events(for: ImageRequest(url: origin.url("/a"))) {
            guard case .progress(let progress) = event else { continue }
            #expect(progress.receivedBytes == 3)
            break
        }
        await origin.waitForDisconnect(from: "/a")
        await until { await loader.loadCount == 0 }
    }

    @Test func `a shutdown cancels loads under way, down to their connection, and no other begins`() async throws {
        let latch = Latch()
        let body = try makePNG()
        let origin = try FaultyOrigin(["/held": .held(by: latch, body: body), "/a": .body(body)])
        let loader = self.fixture.makeLoader()
        let tasks = (0..<10).map { _ in Task { try await loader.image(for: origin.url("/held")) } }
        await origin.waitForRequests(for: "/held")
        await loader.shutdown()
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        await origin.waitForDisconnect(from: "/held")
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: origin.url("/a")) }
        #expect(error?.code == .shutDown)
        #expect(await loader.loadCount == 0)
    }

    @Test func `loaders come and go, and leave no thread and no descriptor`() async {
        // The sockets of other tests would count.
        await #expect(processExitsWith: .success) {
            let fixture = try LoaderFixture()
            let origin = try FaultyOrigin(["/a": .body(try makePNG())])
            func round() async throws {
                let loader = fixture.makeLoader { $0.disk = nil }
                _ = try await loader.image(for: origin.url("/a"))
                await loader.shutdown()
            }
            // The shutdown takes effect although the loader still exists.
            let kept = fixture.makeLoader { $0.disk = nil }
            _ = try await kept.image(for: origin.url("/a"))
            await kept.shutdown()
            let error = await #expect(throws: DownloadError.self) {
                try await kept.downloads.response(for: DownloadRequest(url: origin.url("/a")))
            }
            #expect(error?.code == .shutDown)
            for _ in 0..<20 { try await round() }
            let before = try Resources.now()
            for _ in 0..<60 { try await round() }
            await until { ((try? Resources.now().descriptors) ?? .max) <= before.descriptors + 16 }
        }
    }

    // MARK: During a transfer

    @Test func `an image is shown before its last byte`() async throws {
        let body = try PreviewTests.progressiveJPEG()
        let latch = Latch()
        let middle = body.count * 3 / 4
        let origin = try FaultyOrigin([
            "/a": FaultyResponse([
                FaultyResponse.head(200, [("Content-Length", "\(body.count)")]), .send(Array(body[..<middle])),
                .wait(latch), .send(Array(body[middle...])),
            ])
        ])
        // The fixture's counting coders make no previews.
        let loader = self.fixture.makeLoader { $0.coders = CoderRegistry() }
        var previews: [Image] = []
        var end: ImageResponse?
        for try await event in loader.events(for: ImageRequest(url: origin.url("/a"), options: [.previews])) {
            switch event {
            case .progress, .cached: break
            case .preview(let image):
                previews.append(image)
                latch.open()
            case .finished(let response): end = response
            }
        }
        #expect(!previews.isEmpty)
        #expect(previews.allSatisfy { ($0.width, $0.height) == (320, 240) })
        #expect(end?.source == .network)
    }

    @Test(arguments: [true, false]) func `progress grows to the whole body`(isLengthKnown: Bool) async throws {
        let body = Array(try Fixtures.data("flower.webp"))
        let chunks = stride(from: 0, to: body.count, by: 10_000).map {
            Array(body[$0..<min($0 + 10_000, body.count)])
        }
        let origin = try FaultyOrigin(["/a": isLengthKnown ? .body(body) : .chunked(chunks)])
        var progress: [TransferProgress] = []
        for try await event in self.fixture.makeLoader().events(for: ImageRequest(url: origin.url("/a"))) {
            if case .progress(let value) = event { progress.append(value) }
        }
        let counts = progress.map(\.receivedBytes)
        #expect(counts == counts.sorted())
        #expect(counts.last == Int64(body.count))
        #expect(progress.allSatisfy { $0.expectedBytes == (isLengthKnown ? Int64(body.count) : nil) })
    }

    @Test func `the origin is told what the coders read`() async throws {
        let origin = try FaultyOrigin(["/a": .body(try makePNG())])
        func accept(_ change: (inout LoaderActor.Configuration) -> Void = { _ in }) async throws -> String {
            let request = ImageRequest(url: origin.url("/a"), cachePolicy: .reload)
            _ = try await self.fixture.makeLoader(change).image(for: request)
            return try #require(origin.requestHeads(for: "/a").last)
        }
        let usual = try await accept()
        for type in ["image/jpeg", "image/png", "image/webp", "image/*;q=0.8"] { #expect(usual.contains(type)) }
        #expect(!usual.contains("image/avif"))
        #expect(try await accept { $0.coders.register(SquareCoder()) }.contains("image/x-square"))
        #expect(try await accept { $0.downloads.acceptHeader = "image/png" }.contains("Accept: image/png\r\n"))
    }

    @Test func `a fetcher may wrap a downloader`() async throws {
        let body = try makePNG(width: 10)
        let server = try FaultyOrigin(["/a": .body(body, headers: [("ETag", "\"1\"")])])
        let loader = self.fixture.makeLoader { $0.fetcher = SigningFetcher(base: DownloadActor()) }
        let request = ImageRequest(url: server.url("/a"), options: [.waitForStore], cachePolicy: .revalidate)
        #expect(try await loader.response(for: request).source == .network)
        let head = try #require(server.requestHeads(for: "/a").last)
        #expect(head.contains("X-Signature: signed"))
        server.script("/a", FaultyResponse([FaultyResponse.head(304, [("ETag", "\"1\"")])]))
        #expect(try await loader.response(for: request).revalidation == .notModified)
        server.script("/a", .body([], status: 404))
        let error = await #expect(throws: LoadError.self) { try await loader.response(for: request) }
        #expect(error?.code == .badStatus)
        #expect(await loader.downloads.counters.started == 0)
    }

    @Test func `a status that a hook sets to an error is stored nowhere`() async throws {
        let fields = [("Cache-Control", "max-age=600")]
        let origin = try FaultyOrigin(["/a": .body(try makePNG(), headers: fields)])
        let loader = self.fixture.makeLoader { configuration in
            configuration.hooks.modifyResponse = { response, _ in
                var response = response
                response.status = 404
                return response
            }
        }
        let request = ImageRequest(url: origin.url("/a"), options: [.waitForStore])
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: request) }
        #expect(error?.code == .badStatus)
        #expect(self.fixture.cacheFiles().isEmpty)
        #expect(await loader.cache.tiers(holding: request.key, in: .all) == .none)
    }

    /// Answers a condition with 304, and other requests with `body`.
    private static func confirming(_ body: [UInt8], _ fields: [(String, String)]) -> FaultyResponse {
        FaultyResponse([
            .answer { head in
                String(decoding: head, as: UTF8.self).contains("If-None-Match")
                    ? FaultyResponse([FaultyResponse.head(304, fields)]) : .body(body, headers: fields)
            }
        ])
    }

    @Test(arguments: [nil, "key"])
    func `a redirect that leads elsewhere is no confirmation`(cacheKey: String?) async throws {
        let png = try makePNG(width: 10)
        let other = try makePNG(width: 20)
        let origin = try FaultyOrigin([
            "/": .redirect(to: "/a"),
            "/a": .body(png, headers: [("ETag", "\"1\""), ("Cache-Control", "max-age=600")]),
        ])
        let loader = self.fixture.makeLoader { $0.cachePolicy = .honorFreshness }
        let request = ImageRequest(url: origin.url("/"), cacheKey: cacheKey)
        _ = try await loader.image(for: request)
        // The same entity tag at another URL names another image.
        origin.script("/", .redirect(to: "/b"))
        origin.script("/b", Self.confirming(other, [("ETag", "\"1\"")]))
        #expect(try await loader.image(for: request).width == 20)
        #expect(origin.requestCount(for: "/b") == 2)
    }

    @Test(arguments: [false, true])
    func `a cache key names an image at several URLs, unless it contains the URL`(containsURL: Bool) async throws {
        let fields = [("ETag", "\"1\""), ("Cache-Control", "no-cache")]
        let origin = try FaultyOrigin(["/a": .body(try makePNG(width: 10), headers: fields)])
        let loader = self.fixture.makeLoader { $0.cachePolicy = .honorFreshness }
        let key = containsURL ? "1 \(origin.url("/b").absoluteString)" : "key"
        _ = try await loader.image(for: ImageRequest(url: origin.url("/a"), cacheKey: key))
        let other = try makePNG(width: 20)
        origin.script("/b", Self.confirming(other, fields))
        let image = try await loader.image(for: ImageRequest(url: origin.url("/b"), cacheKey: key))
        #expect(image.width == (containsURL ? 20 : 10))
    }

    @Test(arguments: [true, false])
    func `a download that was resumed is stored as the whole`(isInMemory: Bool) async throws {
        let content = try makePNG(width: 300, height: 300)
        let cut = content.count / 2
        let fields = [("ETag", "\"v1\""), ("Cache-Control", "max-age=600"), ("Content-Type", "image/png")]
        let half = FaultyResponse([
            FaultyResponse.head(200, fields + [("Accept-Ranges", "bytes"), ("Content-Length", "\(content.count)")]),
            .send(Array(content[..<cut])), .close,
        ])
        let range = "bytes \(cut)-\(content.count - 1)/\(content.count)"
        let rest = FaultyResponse.body(
            Array(content[cut...]),
            status: 206,
            headers: fields.dropLast() + [("Content-Range", range)]
        )
        let origin = try FaultyOrigin()
        origin.script("/a", sequence: [half, rest])
        let parts = DownloadActor.PartialBodies(directory: self.fixture.directory.path(of: "parts"))
        let request = ImageRequest(
            url: origin.url("/a"),
            options: [.waitForStore],
            cachePolicy: .honorFreshness
        )
        let loader = self.fixture.makeLoader { configuration in
            configuration.downloads.partialBodies = parts
            if isInMemory { configuration.downloads.retryPolicy = RetryPolicy(maximumAttempts: 2) }
        }
        if !isInMemory { await #expect(throws: LoadError.self) { try await loader.image(for: request) } }
        let response = try await loader.response(for: request)
        #expect(response.image.width == 300)
        #expect(response.metadata.response?.status == 200)
        #expect(response.metadata.response?.values(for: "Content-Length") == ["\(content.count)"])
        #expect(response.metadata.response?.values(for: "Content-Range") == [])
        #expect(response.metadata.mediaType == "image/png")
        #expect(try await self.fixture.makeLoader().response(for: request).source == .disk)
        #expect(origin.requestCount(for: "/a") == 2)
    }
}
