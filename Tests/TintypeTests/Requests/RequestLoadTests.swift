// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype
@testable import TintypeRequests

/// The effects of a request's fields on its load.
@Suite(.waiting, .timeLimit(.minutes(5))) struct RequestLoadTests {
    let origin = ScriptedOrigin()
    let fixture: LoaderFixture

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
        self.origin.script("/a", .body(try makePNG()))
    }

    private func request(_ change: (inout ImageRequest) -> Void = { _ in }) -> ImageRequest {
        var request = ImageRequest(url: self.origin.url("/a"), options: .waitForStore)
        change(&request)
        return request
    }

    private func code(of load: () async throws -> some Any) async throws -> LoadError.Code {
        do {
            _ = try await load()
        } catch let error as LoadError {
            return error.code
        }
        throw TestSupportError("It did not fail.")
    }

    // MARK: Invalid requests

    private static let nonsense: [(LoadError.Code, @Sendable (inout ImageRequest) -> Void)] = [
        (.invalidSize, { $0.thumbnail = .fit(width: 0, height: 1) }),
        (.invalidSize, { $0.thumbnail = .fill(width: 1, height: -1) }),
        (.invalidSize, { $0.thumbnail = .stretch(width: .min, height: .max) }),
        (.invalidRequest, { $0.rendering.scaleDownLimit = 0 }), (.invalidRequest, { $0.rendering.scaleDownLimit = -1 }),
        (.invalidRequest, { $0.rendering.scale = 0 }), (.invalidRequest, { $0.rendering.scale = -2 }),
        (.invalidRequest, { $0.rendering.scale = .nan }), (.invalidRequest, { $0.rendering.scale = .infinity }),
        (.invalidRequest, { $0.transport.bodyLimit = 0 }), (.invalidRequest, { $0.transport.bodyLimit = .min }),
        (.invalidRequest, { $0.transport.timeouts.idle = .zero }),
        (.invalidRequest, { $0.transport.timeouts.total = .seconds(-1) }),
        (.invalidRequest, { $0.caching.lifetime = .seconds(-1) }),
        (.invalidRequest, { $0.caching.memoryLifetime = .zero }),
        (.invalidRequest, { $0.caching.lifetime = .zero }),
        (.invalidRequest, { $0.transport.retryPolicy = RetryPolicy(maximumAttempts: 0) }),
        (.invalidRequest, { $0.transport.decodingLimits = DecodingLimits(maximumPixels: -1) }),
        (.invalidRequest, { $0.transport.decodingLimits = DecodingLimits(maximumFrames: .min) }),
        (.invalidRequest, { $0.cacheKey = "" }),
    ]

    @Test(arguments: Self.nonsense.indices)
    func `a request of nonsense is refused before any work`(index: Int) async throws {
        let (code, change) = Self.nonsense[index]
        let origin = try ScriptedOrigin(["/a": .body(makePNG())])
        let loader = try LoaderFixture(origin: origin).makeLoader()
        var request = ImageRequest(url: origin.url("/a"))
        // The loader does not serve such a request from memory either.
        _ = try await loader.image(for: request)
        change(&request)
        #expect(request.uncheckedMemory.isEmpty)
        let steps = await loader.stepCount
        for load in Self.loads {
            let error = await #expect(throws: LoadError.self) { try await load(loader, request) }
            #expect(error?.code == code)
        }
        #expect(await loader.stepCount == steps)
        #expect(origin.requestCount(for: "/a") == 1)
    }

    static let loads: [@Sendable (LoaderActor, ImageRequest) async throws -> Void] = [
        { _ = try await $0.image(for: $1) }, { _ = try await $0.response(for: $1) }, { _ = try await $0.data(for: $1) },
        { for try await _ in $0.events(for: $1) {} }, { _ = try await $0.header(for: $1) },
        { _ = try await $0.frames(for: $1) },
    ]

    @Test(arguments: [
        ("a.png", LoadError.Code.invalidURL), ("//example.com/a", .invalidURL),
        ("ftp://example.com/a", .unsupportedScheme),
        ("https:a", .invalidURL), ("http:///a", .invalidURL), ("https://?a", .invalidURL), ("HTTP://", .invalidURL),
    ])
    func `a URL that nothing can load is refused before any work`(text: String, code: LoadError.Code) async throws {
        let loader = try LoaderFixture().makeLoader()
        let request = ImageRequest(url: try #require(URL(string: text)))
        for load in Self.loads {
            let error = await #expect(throws: LoadError.self) { try await load(loader, request) }
            #expect(error?.code == code)
        }
        #expect(await loader.stepCount == 0)
    }

    @Test func `a scheme that only a fetcher knows is left to it`() async throws {
        let origin = try ScriptedOrigin(["/a": .body(makePNG())])
        let url = try #require(URL(string: "s3://bucket/a"))
        var request = ImageRequest(url: url)
        #expect(try await LoaderFixture(origin: origin).makeLoader().image(for: url).width == 8)
        request.source.fetcher = Named("s3", origin)
        #expect(try await LoaderFixture().makeLoader().image(for: request).width == 8)
    }

    // MARK: The download

    @Test func `the fetcher is told what the request says of its download, and nothing where that says nothing`()
        async throws
    {
        let loader = self.fixture.makeLoader()
        let jar = CookieJar()
        _ = try await loader.image(for: self.request())
        let said = self.request {
            $0.source.credentials = .bearer("a")
            $0.source.cookies = .jar(jar)
            $0.transport.networkPolicy = .publicInternet
            $0.transport.bodyLimit = 1_000
            $0.transport.timeouts = LoadTimeouts(idle: .seconds(3), total: .seconds(4))
            $0.transport.retryPolicy = RetryPolicy(maximumAttempts: 7)
        }
        _ = try await loader.image(for: said)
        let downloads = self.origin.requests(for: "/a")
        #expect(downloads.map(\.credentials) == [nil, .bearer("a")])
        #expect(downloads.map(\.cookies) == [nil, .jar(jar)])
        #expect(downloads.map(\.networkPolicy) == [nil, .publicInternet])
        #expect(downloads.map(\.maximumBodySize) == [64 << 20, 1_000])
        #expect(downloads.map(\.timeout) == [nil, .seconds(3)])
        #expect(downloads.map(\.totalTimeout) == [nil, .seconds(4)])
        #expect(downloads.map(\.retryPolicy?.maximumAttempts) == [nil, 7])
    }

    @Test(arguments: RequestFieldTests.all.filter { $0.separates == .flight })
    func `loads that differ in a rule ask the origin by themselves, but for what the cache has`(
        field: RequestFieldTests.Field
    ) async throws {
        for isCached in [false, true] {
            let gate = Gate()
            let origin = try ScriptedOrigin(["/a": .held(by: gate, body: makePNG())])
            let loader = try LoaderFixture(origin: origin).makeLoader()
            var plain = ImageRequest(url: origin.url("/a"))
            if !isCached { plain.caching.originals = .none }
            var ruled = plain
            field.change(&ruled)
            guard ruled != plain else { continue }
            let isAsked = !isCached || ruled.cachePolicy == .reload || ruled.caching.originals == .none
            // The plain load begins first. Otherwise it could find the response of the other load in the cache.
            let first = Task { [plain] in try await loader.data(for: plain) }
            await until { origin.requestCount(for: "/a") == 1 }
            let tasks = [first, Task { [ruled] in try await loader.data(for: ruled) }]
            await until { await loader.bytesWaiterCount == 2 && origin.requestCount(for: "/a") == 1 }
            await gate.open()
            for task in tasks {
                // A limit may refuse the response that the other load gets.
                do { _ = try await task.value } catch let error as LoadError { #expect(error.code == .bodyTooLarge) }
            }
            // If the strict load went first and refused the body, the other load sends its own request.
            #expect(origin.requestCount(for: "/a") == 2 || !isAsked && origin.requestCount(for: "/a") == 1)
        }
    }

    @Test func `a strict limit gets nothing that a lax one allowed`() async throws {
        let gate = Gate()
        self.origin.script("/a", .held(by: gate, body: try makePNG(width: 100, height: 100)))
        let loader = self.fixture.makeLoader()
        let lax = self.request { $0.caching.originals = .none }
        let strict = self.request {
            $0.caching.originals = .none
            $0.transport.bodyLimit = 10
        }
        let small = self.request {
            $0.caching.originals = .none
            $0.transport.decodingLimits = DecodingLimits(maximumPixels: 9_999)
        }
        let tasks = [lax, strict, small].map { request in Task { try await loader.image(for: request) } }
        await until { await loader.waiterCount == 3 }
        #expect(await loader.loadCount == 3)
        await gate.open()
        #expect(try await tasks[0].value.width == 100)
        #expect(try await self.code { try await tasks[1].value } == .bodyTooLarge)
        #expect(try await self.code { try await tasks[2].value } == .tooManyPixels)
        // A request may also raise the loader's own limits.
        let loose = self.fixture.makeLoader { $0.limits.maximumPixels = 1 }
        #expect(try await self.code { try await loose.image(for: lax) } == .tooManyPixels)
        #expect(
            try await loose.image(for: self.request { $0.transport.decodingLimits = DecodingLimits() }).width == 100
        )
    }

    @Test func `users share neither a flight nor an entry`() async throws {
        self.origin.script(
            "/a",
            .answer { request in
                let width = request.credentials == .bearer("a") ? 10 : request.credentials == .bearer("b") ? 20 : 30
                return .body((try? makePNG(width: width)) ?? [], headers: ["Cache-Control": "max-age=600"])
            }
        )
        for policy in [CachePolicy.neverRevalidate, .honorFreshness] {
            let fixture = try LoaderFixture(origin: self.origin)
            for loader in [fixture.makeLoader(), fixture.makeLoader()] {
                let tasks = [Credentials.bearer("a"), .bearer("b"), nil].map { credentials in
                    let request = self.request {
                        $0.source.credentials = credentials
                        $0.cachePolicy = policy
                    }
                    return Task { try await loader.image(for: request).width }
                }
                var widths: [Int] = []
                for task in tasks { widths.append(try await task.value) }
                #expect(widths == [10, 20, 30])
                // The key also contains the credentials of the loader.
                let own = fixture.makeLoader { $0.credentials = .bearer("a") }
                let response = try await own.response(for: self.request { $0.cachePolicy = policy })
                #expect((response.image.width, response.source) == (10, .disk))
                #expect(try await own.image(for: self.origin.url("/a")).width == 10)
            }
        }
        #expect(self.origin.requestCount(for: "/a") == 6)
    }

    @Test func `a shared cache keeps nothing that was asked for with credentials`() async throws {
        self.origin.script("/a", .body(try makePNG(), headers: ["Cache-Control": "max-age=600"]))
        let loader = self.fixture.makeLoader {
            $0.cachePolicy = .honorFreshness
            $0.isSharedCache = true
        }
        let request = self.request { $0.source.credentials = .bearer("a") }
        for _ in 0..<2 { #expect(try await loader.response(for: request).source == .network) }
    }

    // MARK: Functions

    @Test func `a request is modified for the load that it is told`() async throws {
        let loader = self.fixture.makeLoader {
            $0.hooks.modifyRequest = { download, request in
                var download = download
                download.headers["X-Name"] = request.url.lastPathComponent
                return download
            }
        }
        _ = try await loader.image(for: self.request())
        _ = try await loader.image(
            for: self.request {
                let own = LoadHooks(modifyRequest: { download, request in
                    var download = download
                    download.headers["X-Side"] = "\(request.thumbnail?.width ?? 0)"
                    return download
                })
                $0.source.hooks = Named("own", own)
                $0.thumbnail = .fit(width: 3, height: 3)
            }
        )
        let headers = self.origin.requests(for: "/a").map(\.headers)
        // A request's own hook replaces the loader's.
        #expect(headers.map { $0["X-Name"] } == ["a", nil])
        #expect(headers.map { $0["X-Side"] } == [nil, "3"])
    }

    @Test func `a body is decrypted before it is judged, kept and shown`() async throws {
        let plain = try Array(Fixtures.data("kodak-3.png"))
        let secret = plain.map { $0 ^ 0x5A }
        self.origin.script("/a", .pieces([Array(secret.prefix(100_000)), Array(secret.dropFirst(100_000))]))
        let hooks = LoadHooks(decrypt: { body, _, request in
            Data(body.map { $0 ^ (request.headers["X-Key"] == "5A" ? 0x5A : 0) })
        })
        let request = self.request {
            $0.source.hooks = Named("xor", hooks)
            $0.headers = ["X-Key": "5A"]
            $0.options.insert(.previews)
        }
        let loader = self.fixture.makeLoader()
        var previews = 0
        for try await event in loader.events(for: request) {
            if case .preview = event { previews += 1 }
        }
        #expect(previews == 0)
        #expect(try await self.fixture.makeLoader().data(for: request) == Data(plain))
        #expect(self.origin.requestCount(for: "/a") == 1)
        // Without the hooks the bytes are not an image. The load does not use the decrypted bytes of the other
        // request.
        #expect(try await self.code { try await loader.image(for: self.request()) } == .notAnImage)
        await until { loader.downloads.bodyBudget.status.usedBytes == 0 }
        let whole = self.fixture.makeLoader { $0.hooks.decrypt = { body, _, _ in Data(body.map { $0 ^ 0x5A }) } }
        #expect(try await whole.data(for: self.request { $0.cachePolicy = .reload }) == Data(plain))
    }

    @Test func `a response that was modified is judged like one that came`() async throws {
        let loader = self.fixture.makeLoader()
        let changes: [(LoadError.Code, LoadHooks)] = [
            (
                .badStatus,
                LoadHooks(modifyResponse: { response, _ in
                    var response = response
                    response.status = 404
                    return response
                })
            ),
            (
                .bodyTooLarge,
                LoadHooks(modifyResponse: { response, request in
                    var response = response
                    response.body = Data(count: (request.transport.bodyLimit ?? 0) + 1)
                    return response
                })
            ),
            (.refused, LoadHooks(modifyResponse: { _, _ in throw TestSupportError("no") })),
            // No task was cancelled.
            (.refused, LoadHooks(modifyResponse: { _, _ in throw CancellationError() })),
        ]
        for (code, hooks) in changes {
            let request = self.request {
                $0.transport.bodyLimit = 10_000
                $0.source.hooks = Named("\(code)", hooks)
            }
            #expect(try await self.code { try await loader.image(for: request) } == code)
        }
        let refusing = self.fixture.makeLoader { $0.hooks.modifyRequest = { _, _ in throw TestSupportError("no") } }
        let count = self.origin.requestCount(for: "/a")
        #expect(try await self.code { try await refusing.image(for: self.request()) } == .refused)
        let failing = self.request {
            $0.source.hooks = Named("no", LoadHooks(decrypt: { _, _, _ in throw TestSupportError("no") }))
        }
        #expect(try await self.code { try await loader.image(for: failing) } == .decryptionFailed)
        #expect(self.origin.requestCount(for: "/a") == count + 1)
    }

    // MARK: Keys

    @Test func `URLs with signatures are one image, by a key of the request or a filter of the loader`() async throws {
        let urls = (0..<3).map { self.origin.url("/a?signature=\($0)") }
        let loader = self.fixture.makeLoader()
        for url in urls {
            _ = try await loader.image(for: ImageRequest(url: url, cacheKey: "a", options: .waitForStore))
        }
        #expect(self.origin.requestCount(for: "/a") == 1)
        let filtering = self.fixture.makeLoader {
            $0.keyFilter = {
                $0.url.query() == nil ? nil : $0.url.absoluteString.split(separator: "?").first.map { "\($0)" }
            }
        }
        for url in urls { _ = try await filtering.response(for: ImageRequest(url: url, options: .waitForStore)) }
        #expect(self.origin.requestCount(for: "/a") == 2)
        #expect(try await filtering.image(for: urls[2]).width == 8)
        #expect(try await filtering.data(for: ImageRequest(url: urls[1])) == Data(makePNG()))
        // A request's own key takes precedence over the filter. If the filter returns `nil`, the URL is the key.
        #expect(try await filtering.response(for: ImageRequest(url: urls[0], cacheKey: "a")).source == .disk)
        #expect(try await filtering.response(for: ImageRequest(url: self.origin.url("/a"))).source == .network)
        #expect(self.origin.requestCount(for: "/a") == 3)
    }

    @Test func `a thousand loads with signatures of their own are one download`() async throws {
        let gate = Gate()
        self.origin.script("/a", .held(by: gate, body: try makePNG()))
        let loader = self.fixture.makeLoader()
        let tasks = (0..<1_000).map { index in
            let request = ImageRequest(url: self.origin.url("/a?signature=\(index)"), cacheKey: "a")
            return Task { try await loader.image(for: request).width }
        }
        await until { await loader.waiterCount == 1_000 }
        await gate.open()
        for task in tasks { #expect(try await task.value == 8) }
        #expect(self.origin.requestCount(for: "/a") == 1)
    }

    @Test func `what was stored under another signature is confirmed by its validators`() async throws {
        let body = try makePNG()
        self.origin.script(
            "/a",
            .answer { request in
                let isKnown = request.headers["If-None-Match"] == "\"1\""
                return .body(isKnown ? [] : body, status: isKnown ? 304 : 200, headers: ["ETag": "\"1\""])
            }
        )
        let loader = self.fixture.makeLoader()
        for (index, revalidation) in [nil, Revalidation.notModified].enumerated() {
            let request = ImageRequest(
                url: self.origin.url("/a?signature=\(index)"),
                cacheKey: "a",
                options: .waitForStore,
                cachePolicy: .revalidate
            )
            #expect(try await loader.response(for: request).revalidation == revalidation)
        }
        #expect(self.origin.requestCount(for: "/a") == 2)
    }

    // MARK: Scale

    @Test func `the image has its scale from every tier, and two scales are two images`() async throws {
        self.origin.script("/a@2x.png", .body(try makePNG(width: 100, height: 50)))
        let named = ImageRequest(
            source: .init(url: self.origin.url("/a@2x.png")),
            caching: .init(variants: .all),
            options: .waitForStore
        )
        var thumbnail = named
        thumbnail.thumbnail = .fit(width: 10, height: 10)
        var said = thumbnail
        said.rendering.scale = 3
        var full = named
        // An explicit scale takes precedence over the scale in the name.
        full.rendering.scale = 1
        let requests = [(named, 2.0), (thumbnail, 2), (said, 3), (full, 1)]
        for source in [LoadSource.network, .memory, .disk, .memory] {
            let loader = self.fixture.makeLoader()
            for (request, scale) in requests {
                if source == .memory { _ = try await loader.image(for: request) }
                let response = try await loader.response(for: request)
                #expect(response.image.scale == scale)
                if source != .network { #expect(response.source == (source == .memory ? .memory : response.source)) }
            }
            await loader.waitForPendingStores()
            let bare = self.fixture.makeLoader { $0.disk = nil }
            // The thumbnail is made from the decoded original, which has another scale.
            _ = try await bare.image(for: full)
            #expect(try await bare.response(for: thumbnail).image.scale == 2)
        }
        #expect(try await self.fixture.makeLoader().frames(for: said).frame(at: 0).scale == 3)
        // The disk has the variants.
        let cold = try await self.fixture.makeLoader().response(for: said)
        #expect((cold.source, cold.image.scale, cold.image.width) == (.disk, 3, 10))
    }

    // MARK: Storage

    @Test func `the disk has exactly the bytes that a serializer made`() async throws {
        let stored = Data(try makePNG(width: 5))
        let serializer = Named<ImageRequest.OriginalSerializer>("smaller") { body, request in
            #expect(body.count > 8 && request.url.lastPathComponent == "a")
            return stored
        }
        let loader = self.fixture.makeLoader()
        // The load itself gets the origin's bytes.
        #expect(try await loader.image(for: self.request { $0.caching.originalSerializer = serializer }).width == 8)
        let second = try await self.fixture.makeLoader().dataResponse(for: self.request())
        #expect((second.source, second.data, second.metadata.byteCount) == (.disk, stored, stored.count))
        #expect(self.origin.requestCount(for: "/a") == 1)
        // A loader's serializer applies to all its requests.
        let other = try LoaderFixture(origin: self.origin)
        _ = try await other.makeLoader { $0.originalSerializer = { _, _ in stored } }.image(for: self.request())
        #expect(try await other.makeLoader().data(for: self.request()) == stored)
    }

    @Test func `a serializer may keep nothing, or fail, and the load goes on`() async throws {
        let loader = self.fixture.makeLoader()
        let none = self.request { $0.caching.originalSerializer = Named("none") { _, _ in nil } }
        #expect(try await loader.response(for: none).storeError == nil)
        #expect(await !loader.cache.contains(none.sourceKey, in: .disk))
        var failing = none
        failing.cachePolicy = .reload
        failing.caching.originalSerializer = Named("failing") { _, _ in throw TestSupportError("no") }
        #expect(try await loader.response(for: failing).storeError?.code == .cacheFailed)
    }

    @Test func `a variant is encoded as its request says`() async throws {
        let loader = self.fixture.makeLoader { $0.variantEncoder = { _, _ in throw TestSupportError("not this one") } }
        let bytes = Data(try makePNG(width: 4, height: 3))
        let request = self.request {
            $0.thumbnail = .fit(width: 4, height: 4)
            $0.caching.variants = .all
            $0.caching.variantEncoder = Named("own") { image, request in
                #expect(image.width == 4 && request.thumbnail?.width == 4)
                return bytes
            }
        }
        #expect(try await loader.response(for: request).storeError == nil)
        guard let entry = try await loader.cache.entry(for: request.key) else {
            throw TestSupportError("The variant is not on disk.")
        }
        #expect(entry.data == bytes)
    }

    @Test func `only the tier that a request asks may answer it`() async throws {
        let loader = self.fixture.makeLoader()
        _ = try await loader.data(for: self.request())
        let memory = self.request {
            $0.caching.originals = .memory
            $0.cachePolicy = .cacheOnly
        }
        #expect(try await self.code { try await loader.response(for: memory) } == .notInCache)
        let disk = self.request {
            $0.caching.originals = .disk
            $0.cachePolicy = .cacheOnly
        }
        let first = try await loader.response(for: self.request())
        let second = try await loader.response(for: disk)
        #expect((first.source, second.source) == (.disk, .disk))
        #expect(first.image.pixels !== second.image.pixels)
        #expect(try await loader.response(for: memory).source == .memory)
        #expect(self.origin.requestCount(for: "/a") == 1)
    }

    @Test func `an entry ends with the lifetime that its request gives it, in both tiers`() async throws {
        let clock = TestClock()
        let loader = self.fixture.makeLoader {
            $0.now = { clock.now }
            $0.memory.now = { clock.now }
            $0.disk?.now = { clock.now }
        }
        let request = self.request { $0.caching.lifetime = .seconds(60) }
        #expect(try await loader.response(for: request).source == .network)
        clock.advance(by: 59)
        #expect(try await loader.response(for: request).source == .memory)
        #expect(try await loader.dataResponse(for: request).source == .disk)
        clock.advance(by: 2)
        #expect(try await loader.dataResponse(for: request).source == .network)
        // The image in memory ends with its lifetime, although its bytes on disk live longer.
        let plain = self.request { $0.cachePolicy = .reload }
        _ = try await loader.data(for: plain)
        #expect(try await loader.response(for: request).source == .disk)
        clock.advance(by: 61)
        #expect(try await loader.response(for: request).source == .disk)
    }

    @Test func `an image in memory ends before its bytes on disk if its request says so`() async throws {
        let clock = TestClock()
        let loader = self.fixture.makeLoader {
            $0.now = { clock.now }
            $0.memory.now = { clock.now }
            $0.disk?.now = { clock.now }
        }
        let request = self.request {
            $0.caching.lifetime = .seconds(60)
            $0.caching.memoryLifetime = .seconds(10)
        }
        #expect(try await loader.response(for: request).source == .network)
        clock.advance(by: 9)
        #expect(try await loader.response(for: request).source == .memory)
        clock.advance(by: 2)
        #expect(try await loader.response(for: request).source == .disk)
        clock.advance(by: 50)
        #expect(try await loader.response(for: request).source == .network)
    }

    @Test func `the loader's tiers store the variants of requests that name none`() async throws {
        let request = self.request { $0.thumbnail = .stretch(width: 4, height: 3) }
        _ = try await self.fixture.makeLoader { $0.variantTiers = .all }.image(for: request)
        let stored = self.request {
            $0.thumbnail = .stretch(width: 4, height: 3)
            $0.caching.originals = .none
            $0.cachePolicy = .cacheOnly
        }
        await #expect(throws: LoadError.self) {
            try await self.fixture.makeLoader { $0.disk?.directory = self.fixture.directory.url(of: "other") }
                .image(for: stored)
        }
        let loader = self.fixture.makeLoader()
        #expect(try await loader.response(for: stored).source == .disk)
        #expect(self.origin.requestCount(for: "/a") == 1)
    }

    @Test func `what the request wants kept with the entry is found in both tiers`() async throws {
        let loader = self.fixture.makeLoader()
        let request = self.request { $0.caching.extra = ["owner": "7"] }
        _ = try await loader.image(for: request)
        for loader in [loader, self.fixture.makeLoader()] {
            let response = try await loader.response(for: self.request())
            #expect(response.metadata.extra == ["owner": "7"])
        }
    }

    // MARK: Hooks

    @Test func `requests are processed before memory is looked at, on every way into the loader`() async throws {
        let gate = Gate()
        let loader = self.fixture.makeLoader {
            $0.optionsProcessor = { request in
                await gate.wait()
                var request = request
                if request.url.lastPathComponent == "b" { throw TestSupportError("not b") }
                request.url = request.url.deletingLastPathComponent().appending(path: "a")
                request.rendering.scale = 3
                return request
            }
        }
        let other = ImageRequest(url: self.origin.url("/x"), options: .waitForStore)
        let waiting = Task { try await loader.image(for: other) }
        await gate.open()
        #expect(try await waiting.value.scale == 3)
        let processed = self.request { $0.rendering.scale = 3 }
        #expect(loader.cache.memory.image(for: processed.key) != nil)
        #expect(try await loader.image(for: other.url).scale == 3)
        #expect(try await loader.response(for: other).source == .memory)
        #expect(try await loader.data(for: other) == Data(makePNG()))
        #expect(try await loader.header(for: other).pixelWidth == 8)
        #expect(try await loader.frames(for: other).frame(at: 0).scale == 3)
        for try await event in loader.events(for: other) {
            if case .finished(let response) = event { #expect(response.source == .memory) }
        }
        for await progress in Prefetcher(loader: loader).prefetch([other]) { #expect(progress.failedCount == 0) }
        #expect(self.origin.requestedPaths == ["/a"])
        #expect(try await self.code { try await loader.image(for: self.origin.url("/b")) } == .refused)
    }

    @Test func `an origin is asked only where the program lets it be, and once for a flight`() async throws {
        let questions = Box(0)
        let allows = Box(false)
        let gate = Gate()
        let loader = self.fixture.makeLoader {
            $0.shouldDownload = { _ in
                questions.value = (questions.value ?? 0) + 1
                await gate.wait()
                return allows.value ?? false
            }
        }
        let request = self.request()
        let tasks = (0..<100).map { _ in Task { try await loader.image(for: request) } }
        await until { await loader.waiterCount == 100 }
        await gate.open()
        for task in tasks { #expect(try await self.code { try await task.value } == .downloadRefused) }
        #expect(questions.value == 1)
        #expect(self.origin.requestedPaths.isEmpty)
        allows.value = true
        _ = try await loader.image(for: request)
        allows.value = false
        // Cached images need no download, so the loader does not ask for permission.
        _ = try await loader.image(for: request)
        _ = try await loader.data(for: request)
        #expect(questions.value == 2)
    }

    @Test func `what the program does not let be stored is in no tier, nor what it replaces`() async throws {
        let allows = Box(true)
        let loader = self.fixture.makeLoader {
            $0.shouldStore = { metadata, request in
                #expect(metadata.byteCount ?? 0 > 0 && request.url.lastPathComponent == "a")
                return allows.value ?? false
            }
        }
        _ = try await loader.image(for: self.request())
        #expect(await loader.cache.tiers(holding: self.request().key, in: .all) == .all)
        allows.value = false
        self.origin.script("/a", .body(try makePNG(width: 9)))
        #expect(try await loader.image(for: self.request { $0.cachePolicy = .reload }).width == 9)
        #expect(await loader.cache.tiers(holding: self.request().key, in: .all) == [])
        #expect(try await loader.response(for: self.request()).source == .network)
    }
}
