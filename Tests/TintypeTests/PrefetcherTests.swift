// SPDX-License-Identifier: Apache-2.0

import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5))) struct PrefetcherTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
    }

    private func requests(_ count: Int) -> [ImageRequest] {
        (0..<count).map { ImageRequest(url: self.origin.url("/\($0)")) }
    }

    @Test(arguments: [1, 3, 50]) func `every request is reported once`(concurrency: Int) async throws {
        let body = try makePNG()
        for index in 0..<20 { self.origin.script("/\(index)", index % 4 == 0 ? .reset : .body(body)) }
        let loader = self.fixture.makeLoader()
        let requests = self.requests(20)
        var outcomes: [ImageRequest: Bool] = [:]
        var last: PrefetchProgress?
        for await progress in Prefetcher(loader: loader, concurrency: concurrency).prefetch(requests) {
            let result = progress.latest
            #expect(outcomes.updateValue((try? result.outcome.get()) != nil, forKey: result.request) == nil)
            #expect(progress.completedCount == outcomes.count)
            last = progress
        }
        #expect(last?.isFinished == true)
        #expect(last?.failedCount == 5)
        #expect(last?.receivedBytes == Int64(15 * body.count))
        #expect(outcomes.count == 20)
        #expect(outcomes.values.filter { $0 }.count == 15)
        #expect(self.fixture.decodes.count == 0)
        #expect(self.fixture.cacheFiles().count == 15)
    }

    @Test func `an empty list ends at once`() async throws {
        let prefetcher = Prefetcher(loader: self.fixture.makeLoader())
        for await _ in prefetcher.prefetch([]) { Issue.record("nothing was asked for") }
    }

    @Test func `a page is not stored`() async throws {
        self.origin.script("/0", .body(Array("<html></html>".utf8)))
        for await progress in Prefetcher(loader: self.fixture.makeLoader()).prefetch(self.requests(1)) {
            #expect(throws: LoadError.self) { try progress.latest.outcome.get() }
        }
        #expect(self.fixture.cacheFiles().isEmpty)
    }

    @Test(
        arguments: [nil, "Accept-Language", "X-User, Accept", "*"],
        [CacheUse.all, CacheUse(query: .none, store: .disk)]
    )
    func `what HTTP's rules have stored is found by its name`(vary: String?, originals: CacheUse) async throws {
        var fields: HeaderFields = ["Cache-Control": "max-age=600"]
        fields["Vary"] = vary
        self.origin.script("/0", .body(try makePNG(), headers: fields))
        let request = ImageRequest(
            source: .init(url: self.origin.url("/0"), headers: ["Accept-Language": "de", "X-User": "alice"]),
            caching: .init(originals: originals, policy: .honorFreshness)
        )
        for await progress in Prefetcher(loader: self.fixture.makeLoader()).prefetch([request]) {
            #expect(throws: Never.self) { try progress.latest.outcome.get() }
        }
        #expect(!self.fixture.cacheFiles().isEmpty)
    }

    @Test func `what HTTP's rules do not store is a failure, whatever other rules have stored`() async throws {
        self.origin.script("/0", .body(try makePNG(), headers: ["Cache-Control": "no-store"]))
        let loader = self.fixture.makeLoader()
        var request = ImageRequest(url: self.origin.url("/0"), headers: ["X-User": "alice"], options: [.waitForStore])
        _ = try await loader.data(for: request)
        request.cachePolicy = .honorFreshness
        for await progress in Prefetcher(loader: loader).prefetch([request]) {
            let error = #expect(throws: LoadError.self) { try progress.latest.outcome.get() }
            #expect(error?.code == .cacheFailed)
            #expect(error?.message.contains("no-store") == true)
        }
    }

    @Test func `images for memory are decoded`() async throws {
        self.origin.script("/0", .body(try makePNG()))
        let loader = self.fixture.makeLoader()
        for await _ in Prefetcher(loader: loader, destination: .memory).prefetch(self.requests(1)) {}
        #expect(self.fixture.decodes.count == 1)
        #expect(try await loader.response(for: self.requests(1)[0]).source == .memory)
    }

    @Test(arguments: [Prefetcher.Destination.disk, .memory])
    func `a fallback is no prefetched image, and an alternative is one`(
        destination: Prefetcher.Destination
    )
        async throws
    {
        self.origin.script("/1", .body(try makePNG()))
        var requests = self.requests(3)
        requests[0].fallback = try makeGray(1)
        requests[2].alternatives = [requests[1]]
        let loader = self.fixture.makeLoader()
        var failed: [ImageRequest] = []
        for await progress in Prefetcher(loader: loader, destination: destination).prefetch(requests) {
            if (try? progress.latest.outcome.get()) == nil { failed.append(progress.latest.request) }
        }
        #expect(failed == [requests[0]])
        #expect(self.origin.requestCount(for: "/1") == 1)
        #expect(self.origin.priorities(for: "/1").allSatisfy { $0 == .low })
    }

    @Test func `three images are prefetched at once, at low priority, unless it is said otherwise`() async throws {
        let gate = Gate()
        for index in 0..<6 { self.origin.script("/\(index)", .held(by: gate, body: try makePNG())) }
        let prefetcher = Prefetcher(loader: self.fixture.makeLoader())
        var requests = self.requests(6)
        for index in requests.indices { requests[index].priority = .high }
        let stream = prefetcher.prefetch(requests)
        for index in 0..<3 { await self.origin.waitForRequests(for: "/\(index)") }
        #expect(prefetcher.loadCount == 3)
        #expect(self.origin.requestedPaths.sorted() == ["/0", "/1", "/2"])
        #expect(self.origin.priorities(for: "/0") == [.low])
        await gate.open()
        #expect(await stream.reduce(0) { count, _ in count + 1 } == 6)
    }

    @Test func `a reader that leaves cancels what is left`() async throws {
        self.origin.script("/0", .body(try makePNG()))
        self.origin.script("/1", .silence)
        let loader = self.fixture.makeLoader()
        for await _ in Prefetcher(loader: loader, concurrency: 2).prefetch(self.requests(2)) {
            await self.origin.waitForRequests(for: "/1")
            break
        }
        await self.origin.waitForCancellations(for: "/1")
    }

    @Test func `two lists share the limit and both end`() async throws {
        let body = try makePNG()
        for index in 0..<10 { self.origin.script("/\(index)", .body(body)) }
        let prefetcher = Prefetcher(loader: self.fixture.makeLoader(), concurrency: 1)
        async let first = prefetcher.prefetch(self.requests(10)).reduce(0) { count, _ in count + 1 }
        async let second = prefetcher.prefetch(self.requests(6)).reduce(0) { count, _ in count + 1 }
        #expect(await (first, second) == (10, 6))
        // Both lists name the same images, and the origin sent each image once.
        #expect((0..<10).allSatisfy { self.origin.requestCount(for: "/\($0)") == 1 })
    }

    @Test func `a paused prefetcher begins nothing until it resumes`() async throws {
        self.origin.script("/0", .body(try makePNG()))
        let prefetcher = Prefetcher(loader: self.fixture.makeLoader())
        prefetcher.pause()
        let stream = prefetcher.prefetch(self.requests(1))
        await until { prefetcher.waiterCount == 1 }
        #expect(prefetcher.isPaused)
        #expect(prefetcher.loadCount == 0)
        #expect(self.origin.requestedPaths.isEmpty)
        prefetcher.resume()
        #expect(await stream.reduce(0) { $0 + $1.completedCount } == 1)
    }

    @Test func `cancelling ends the streams and the loads`() async throws {
        for path in ["/0", "/1"] { self.origin.script(path, .silence) }
        let prefetcher = Prefetcher(loader: self.fixture.makeLoader(), concurrency: 1)
        let stream = prefetcher.prefetch(self.requests(2))
        await self.origin.waitForRequests(for: "/0")
        prefetcher.cancelAll()
        for await _ in stream { Issue.record("what was cancelled is not reported") }
        await self.origin.waitForCancellations(for: "/0")
        #expect(self.origin.requestCount(for: "/1") == 0)
    }

    @Test func `lists end with their reader and then the prefetcher`() async throws {
        self.origin.script("/0", .silence)
        var prefetcher: Prefetcher? = Prefetcher(loader: self.fixture.makeLoader())
        weak let observed = prefetcher
        var stream = prefetcher?.prefetch(self.requests(1))
        await self.origin.waitForRequests(for: "/0")
        prefetcher = nil
        #expect(observed != nil)
        #expect(stream != nil)
        stream = nil
        await self.origin.waitForCancellations(for: "/0")
        await until { observed == nil }
    }

    @Test func `a loader without a disk cant prefetch to disk`() async throws {
        self.origin.script("/0", .body(try makePNG()))
        let loader = self.fixture.makeLoader { $0.disk = nil }
        for await progress in Prefetcher(loader: loader).prefetch(self.requests(1)) {
            #expect(throws: LoadError.self) { try progress.latest.outcome.get() }
        }
    }
}
