// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeFlights
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// A fetcher that signs requests, lets another fetcher load them, and changes the responses.
struct SigningFetcher: ImageFetching {
    let base: any ImageFetching
    var change: @Sendable (DownloadResponse) -> DownloadResponse = { $0 }

    func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        var request = request
        request.headers["X-Signature"] = "signed"
        return self.change(try await self.base.response(for: request, observer: observer))
    }
}

/// Fetchers instead of the downloader.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ImageFetchingTests {
    let origin = ScriptedOrigin()
    let fixture: LoaderFixture

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
    }

    private func request(_ options: LoadOptions = [.waitForStore], _ policy: CachePolicy? = nil) -> ImageRequest {
        ImageRequest(url: self.origin.url("/a"), options: options, cachePolicy: policy)
    }

    // MARK: Choice of the fetcher

    @Test func `a loader's fetcher brings everything, and nothing is downloaded`() async throws {
        self.origin.script("/a", .body(try makePNG()))
        let loader = self.fixture.makeLoader()
        let response = try await loader.response(for: self.request())
        #expect((response.source, response.image.width) == (.network, 8))
        #expect(try await self.fixture.makeLoader().response(for: self.request()).source == .disk)
        // The fetcher loads files too, by their URLs.
        let file = try self.fixture.directory.write(try makePNG(), to: "file")
        self.origin.script(file, .body(try makePNG(width: 9), status: nil))
        let local = try await loader.response(for: ImageRequest(url: URL(filePath: file)))
        #expect((local.source, local.image.width) == (.file, 9))
        #expect(self.origin.requestedPaths == ["/a", file])
        #expect(await loader.downloads.counters.started == 0)
    }

    @Test func `each loader has its own`() async throws {
        for width in [5, 6] {
            let fixture = try LoaderFixture(origin: ScriptedOrigin(["/a": .body(try makePNG(width: width))]))
            #expect(try await fixture.makeLoader().image(for: self.request()).width == width)
        }
        #expect(self.origin.requestedPaths.isEmpty)
    }

    @Test func `a request's fetcher keeps its bytes apart by its name`() async throws {
        self.origin.script("/a", .body(try makePNG(width: 10)))
        let origins = try ["first": 5, "second": 6].mapValues { ScriptedOrigin(["/a": .body(try makePNG(width: $0))]) }
        func request(_ name: String, _ thumbnail: Resize? = nil) throws -> ImageRequest {
            let fetcher = Named<any ImageFetching>(name, try #require(origins[name]))
            return ImageRequest(
                source: .init(url: self.origin.url("/a"), fetcher: fetcher),
                rendering: .init(thumbnail: thumbnail),
                options: [.waitForStore]
            )
        }
        for loader in [self.fixture.makeLoader(), self.fixture.makeLoader()] {
            #expect(try await loader.image(for: request("first")).width == 5)
            #expect(try await loader.image(for: request("second")).width == 6)
            #expect(try await loader.image(for: self.request()).width == 10)
            // Each thumbnail is made from the bytes of its own fetcher.
            let thumbnail = Resize.fit(width: 100, height: 3)
            #expect(try await loader.image(for: request("first", thumbnail)).height == 3)
            #expect(try await loader.data(for: request("second")) == Data(makePNG(width: 6)))
        }
        // The second loader found all of them on disk.
        for origin in origins.values { #expect(origin.requestCount(for: "/a") == 1) }
        #expect(self.origin.requestCount(for: "/a") == 1)
        // Another fetcher of the same name stands for the same bytes.
        var other = try request("first")
        other.source.fetcher = Named("first", self.origin)
        #expect(try other == request("first"))
        #expect(try await self.fixture.makeLoader().image(for: other).width == 5)
    }

    @Test func `equal requests with a fetcher share one load`() async throws {
        let gate = Gate()
        let own = ScriptedOrigin(["/a": .held(by: gate, body: try makePNG())])
        self.origin.script("/a", .held(by: gate, body: try makePNG(width: 5)))
        let loader = self.fixture.makeLoader()
        var request = self.request([])
        let plain = request
        request.source.fetcher = Named("own", own)
        let tasks = (0..<100).map { _ in
            let request = request
            return Task { try await loader.image(for: request) }
        }
        async let other = loader.image(for: plain)
        await until { await loader.waiterCount == 101 }
        #expect(await loader.loadCount == 2)
        await gate.open()
        for task in tasks { #expect(try await task.value.width == 8) }
        #expect(try await other.width == 5)
        #expect(own.requestCount(for: "/a") == 1)
        #expect(self.origin.requestCount(for: "/a") == 1)
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness])
    func `a scheme of a fetcher's own is cached as any other`(policy: CachePolicy) async throws {
        let url = try #require(URL(string: "s3://bucket/key.png?version=1"))
        self.origin.script("/key.png", .body(try makePNG(), headers: ["Cache-Control": "max-age=600"]))
        let request = ImageRequest(url: url, options: [.waitForStore], cachePolicy: policy)
        let loader = self.fixture.makeLoader()
        for source in [LoadSource.network, .memory] {
            #expect(try await loader.response(for: request).source == source)
        }
        let stored = try await self.fixture.makeLoader().response(for: request)
        #expect(stored.source == .disk)
        #expect(stored.metadata.sourceURL == "s3://bucket/key.png?version=1")
        #expect(self.origin.requests(for: "/key.png").map(\.url) == [url])
    }

    // MARK: Wrapping

    @Test(arguments: [
        (2_000, 200, LoadError.Code.bodyTooLarge), (0, 200, .emptyBody), (100, 404, .badStatus), (0, 304, .badStatus),
    ])
    func `what a fetcher makes of a download is held to the limits as well`(
        count: Int,
        status: Int,
        code: LoadError.Code
    ) async throws {
        let fixture = try LoaderFixture()
        try fixture.directory.write(try makePNG(), to: "a")
        let url = fixture.directory.url(of: "a")
        let loader = fixture.makeLoader { configuration in
            configuration.downloads.maximumBodySize = 1_000
            configuration.fetcher = SigningFetcher(base: DownloadActor()) { response in
                var response = response
                response.body = Data(repeating: 0, count: count)
                response.status = status
                return response
            }
        }
        let error = await #expect(throws: LoadError.self) { try await loader.data(for: ImageRequest(url: url)) }
        #expect(error?.code == code)
        #expect(await loader.downloads.counters.bodyBytes == 0)
    }

    // MARK: Answers

    @Test(arguments: [
        (ScriptedResponse.body([UInt8](repeating: 0, count: 2_000)), LoadError.Code.bodyTooLarge, "1000"),
        (.body([]), .emptyBody, "is empty"), (.body([], status: nil), .emptyBody, "is empty"),
        (.body(Array("gone".utf8), status: 404), .badStatus, "404"), (.body([], status: 304), .badStatus, "304"),
        (.failure(.cannotConnect), .cannotConnect, "scripted"), (.failure(.refused), .refused, "scripted"),
    ])
    func `what is no body is an error of its own kind, and is not kept`(
        response: ScriptedResponse,
        code: LoadError.Code,
        hint: String
    ) async throws {
        self.origin.script("/a", response)
        let loader = self.fixture.makeLoader { $0.limits.maximumEncodedBytes = 1_000 }
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: self.request()) }
        #expect(error?.code == code)
        #expect(error?.message.contains(hint) == true)
        #expect(error?.message.hasSuffix(".") == true)
        let cause = try #require(error?.underlyingError as? DownloadError)
        #expect(cause.url == self.origin.url("/a"))
        #expect(cause.status == (cause.code == .badStatus ? response.status : cause.status))
        #expect(self.origin.requests(for: "/a").map(\.maximumBodySize) == [1_000])
        #expect(self.fixture.cacheFiles().isEmpty)
        // The loader counts no byte of the body any more.
        await until { await loader.downloads.counters.bodyBytes == 0 }
    }

    @Test func `the error of a database is wrapped`() async throws {
        struct DatabaseError: Error {}
        struct Database: ImageFetching {
            func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
                throw DatabaseError()
            }
        }
        let loader = self.fixture.makeLoader { $0.fetcher = Database() }
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: self.request()) }
        #expect(error?.code == .unexpected)
        #expect(error?.underlyingError is DatabaseError)
    }

    @Test func `its bodies count until they are decoded`() async throws {
        let body = try makePNG()
        self.origin.script("/a", .body(body))
        let loader = self.fixture.makeLoader()
        _ = try await loader.image(for: self.request())
        await until { await loader.downloads.counters.bodyBytes == 0 }
        #expect(await loader.downloads.counters.peakBodyBytes == body.count)
    }

    @Test func `a body without a status has no freshness`() async throws {
        self.origin.script("/a", .body(try makePNG(), status: nil, headers: ["Cache-Control": "max-age=600"]))
        let loader = self.fixture.makeLoader()
        for revalidation in [nil, Revalidation.notModified] {
            let response = try await loader.response(for: self.request([.waitForStore], .honorFreshness))
            #expect(response.revalidation == revalidation)
            #expect(response.metadata.response == nil)
        }
        #expect(self.origin.requestCount(for: "/a") == 2)
        #expect(try await self.fixture.makeLoader().response(for: self.request()).source == .disk)
    }

    @Test(arguments: [0, 1]) func `what it was redirected to is stale from the start`(redirectCount: Int) async throws {
        struct Redirected: ImageFetching {
            let body: Data
            let redirectCount: Int
            func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
                DownloadResponse(
                    body: self.body,
                    url: request.url.appending(path: "moved"),
                    headers: ["Cache-Control": "max-age=600"],
                    redirectCount: self.redirectCount
                )
            }
        }
        let fetcher = Redirected(body: Data(try makePNG()), redirectCount: redirectCount)
        let loader = self.fixture.makeLoader { $0.fetcher = fetcher }
        let request = self.request([.waitForStore], .honorFreshness)
        let first = try await loader.response(for: request)
        #expect(first.metadata.sourceURL == "https://origin.example/a/moved")
        let second = try await loader.response(for: request)
        #expect(second.revalidation == (redirectCount == 0 ? nil : .notModified))
    }

    @Test func `its tags are revalidated`() async throws {
        let image = RevisingOrigin(["Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"], at: self.origin)
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: image.url, options: [.waitForStore], cachePolicy: .revalidate)
        for revalidation in [nil, Revalidation.notModified] {
            #expect(try await loader.response(for: request).revalidation == revalidation)
        }
        let requests = self.origin.requests(for: "/image")
        #expect(requests.map { $0.acceptableStatusCodes?.contains(304) } == [nil, true])
        #expect(requests[1].headers["If-None-Match"] == "\"0\"")
        #expect(requests[1].headers["If-Modified-Since"] != nil)
        #expect(self.fixture.decodes.count == 1)
        image.revise()
        let revised = try await loader.response(for: request)
        #expect((revised.revalidation, revised.image.width) == (.modified, 11))
    }

    @Test(arguments: [ScriptedResponse.reset, .failure(.timedOut), .body([1], status: 503), .failure(.refused)])
    func `its failures are stood in for where they are the origin's`(failure: ScriptedResponse) async throws {
        let image = RevisingOrigin(["Cache-Control": "max-age=0, stale-if-error=600"], at: self.origin)
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: image.url, cachePolicy: .honorFreshness)
        _ = try await loader.image(for: request)
        image.fail(with: failure)
        if case .fail(.refused) = failure.steps.first {
            await #expect(throws: LoadError.self) { try await loader.image(for: request) }
        } else {
            #expect(try await loader.response(for: request).revalidation == .failed)
        }
        #expect(image.requests.count == 2)
    }

    // MARK: While a body arrives

    @Test func `it hears how urgent a request is, and what that becomes`() async throws {
        let gate = Gate()
        self.origin.script("/a", .held(by: gate, body: try makePNG()))
        let loader = self.fixture.makeLoader()
        func load(_ priority: DownloadPriority) -> Task<Image, any Error> {
            var request = self.request([])
            request.priority = priority
            return Task { [request] in try await loader.image(for: request) }
        }
        let low = load(.low)
        await self.origin.waitForRequests(for: "/a")
        let high = load(.high)
        await self.origin.waitForPriorities(2, for: "/a")
        let highest = load(.veryHigh)
        await self.origin.waitForPriorities(3, for: "/a")
        highest.cancel()
        await self.origin.waitForPriorities(4, for: "/a")
        #expect(self.origin.priorities(for: "/a") == [.low, .high, .veryHigh, .high])
        await gate.open()
        #expect(try await low.value.width == 8)
        #expect(try await high.value.width == 8)
        #expect(self.origin.requestCount(for: "/a") == 1)
    }

    @Test func `it is cancelled when the last caller leaves`() async throws {
        self.origin.script("/a", .silence)
        let loader = self.fixture.makeLoader()
        let request = self.request()
        let tasks = (0..<10).map { _ in Task { try await loader.image(for: request) } }
        await until { await loader.waiterCount == 10 }
        await self.origin.waitForRequests(for: "/a")
        for task in tasks.dropLast() {
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        await until { await loader.waiterCount == 1 }
        #expect(self.origin.cancellationCount(for: "/a") == 0)
        tasks[9].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[9].value }
        await self.origin.waitForCancellations(for: "/a")
        await until { await loader.loadCount == 0 }
        #expect(self.origin.cancellationCount(for: "/a") == 1)
    }

    @Test(arguments: [true, false]) func `previews are made of the bytes that it shows`(isAsked: Bool) async throws {
        let body = try PreviewTests.progressiveJPEG()
        let gate = Gate()
        let middle = body.count * 3 / 4
        self.origin.script(
            "/a",
            .pieces([Array(body[..<middle]), Array(body[middle...])], movedBy: isAsked ? [gate] : [])
        )
        let loader = self.fixture.makeLoader { $0.coders = CoderRegistry() }
        var previews = 0
        var progress: [Int64] = []
        for try await event in loader.events(for: self.request(isAsked ? [.previews] : [])) {
            switch event {
            case .preview:
                previews += 1
                await gate.open()
            case .progress(let value): progress.append(value.receivedBytes)
            case .cached: break
            case .finished(let response): #expect((response.image.width, response.image.height) == (320, 240))
            }
        }
        #expect((previews > 0) == isAsked)
        #expect(progress == progress.sorted())
        #expect(progress.last == Int64(body.count))
    }

    @Test func `a fetcher that shows nothing has no previews and no progress`() async throws {
        struct Database: ImageFetching {
            let body: Data
            func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
                DownloadResponse(body: self.body, url: request.url)
            }
        }
        let body = Data(try PreviewTests.progressiveJPEG())
        let loader = self.fixture.makeLoader { $0.fetcher = Database(body: body) }
        var events: [LoadEvent] = []
        for try await event in loader.events(for: self.request([.previews])) { events.append(event) }
        #expect(events.count == 1)
        guard case .finished(let response)? = events.first else {
            Issue.record("no end")
            return
        }
        #expect(response.image.width == 320)
    }

    @Test func `a shutdown ends what is being fetched`() async throws {
        self.origin.script("/a", .silence)
        let loader = self.fixture.makeLoader()
        let request = self.request()
        let task = Task { try await loader.image(for: request) }
        await self.origin.waitForRequests(for: "/a")
        await loader.shutdown()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(self.origin.cancellationCount(for: "/a") == 1)
    }

    @Test func `a change is seen by a fetch that begins`() async {
        let flight = FlightState(id: 1, demand: .init(priority: .low), hasTurn: true, newestBody: nil)
        var demand = Demand(priority: .low)
        let request = DownloadRequest(url: URL(filePath: "/a"))
        // No notice is needed before the download begins, because the download reads the new priority itself.
        #expect(flight.change(.init(priority: .veryHigh)) == nil)
        await flight.running(Fetch(request: request, fetcher: DownloadActor())) { priority in
            #expect(priority() == .veryHigh)
            #expect(flight.change(demand)?.request == request)
            demand.showsPreviews = true
            #expect(flight.change(demand) == nil)
            #expect(priority() == .low)
        }
        #expect(flight.change(.init(priority: .high)) == nil)
    }
}
