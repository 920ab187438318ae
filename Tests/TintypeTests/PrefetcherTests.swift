import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Tintype

@Suite(.waiting, .timeLimit(.minutes(5))) struct PrefetcherTests {
    let fixture: LoaderFixture

    init() throws {
        self.fixture = try LoaderFixture()
    }

    private func requests(_ origin: FaultyOrigin, _ count: Int) -> [ImageRequest] {
        (0..<count).map { ImageRequest(url: origin.url("/\($0)")) }
    }

    @Test(arguments: [1, 3, 50]) func everyRequestIsReportedOnce(concurrency: Int) async throws {
        let body = try makePNG()
        let responses = (0..<20).map { ("/\($0)", $0 % 4 == 0 ? .reset : FaultyResponse.body(body)) }
        let origin = try FaultyOrigin(Dictionary(uniqueKeysWithValues: responses))
        let loader = self.fixture.makeLoader()
        let requests = self.requests(origin, 20)
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

    @Test func anEmptyListEndsAtOnce() async throws {
        let prefetcher = Prefetcher(loader: self.fixture.makeLoader())
        for await _ in prefetcher.prefetch([]) { Issue.record("nothing was asked for") }
    }

    @Test func aPageIsNotStored() async throws {
        let origin = try FaultyOrigin(["/0": .body(Array("<html></html>".utf8))])
        for await progress in Prefetcher(loader: self.fixture.makeLoader()).prefetch(self.requests(origin, 1)) {
            #expect(throws: LoadError.self) { try progress.latest.outcome.get() }
        }
        #expect(self.fixture.cacheFiles().isEmpty)
    }

    @Test(
        arguments: [nil, "Accept-Language", "X-User, Accept", "*"],
        [CacheUse.all, CacheUse(query: .none, store: .disk)]
    )
    func `what HTTP's rules have stored is found by its name`(vary: String?, originals: CacheUse) async throws {
        let fields = [("Cache-Control", "max-age=600")] + (vary.map { [("Vary", $0)] } ?? [])
        let origin = try FaultyOrigin(["/0": .body(try makePNG(), headers: fields)])
        let request = ImageRequest(
            url: origin.url("/0"),
            headers: ["Accept-Language": "de", "X-User": "alice"],
            originalCaching: originals,
            cachePolicy: .honorFreshness
        )
        for await progress in Prefetcher(loader: self.fixture.makeLoader()).prefetch([request]) {
            #expect(throws: Never.self) { try progress.latest.outcome.get() }
        }
        #expect(!self.fixture.cacheFiles().isEmpty)
    }

    @Test func `what HTTP's rules do not store is a failure, whatever other rules have stored`() async throws {
        let fields = [("Cache-Control", "no-store")]
        let origin = try FaultyOrigin(["/0": .body(try makePNG(), headers: fields)])
        let loader = self.fixture.makeLoader()
        var request = ImageRequest(url: origin.url("/0"), headers: ["X-User": "alice"], options: [.waitForStore])
        _ = try await loader.data(for: request)
        request.cachePolicy = .honorFreshness
        for await progress in Prefetcher(loader: loader).prefetch([request]) {
            let error = #expect(throws: LoadError.self) { try progress.latest.outcome.get() }
            #expect(error?.code == .cacheFailed)
        }
    }

    @Test func picturesForMemoryAreDecoded() async throws {
        let origin = try FaultyOrigin(["/0": .body(try makePNG())])
        let loader = self.fixture.makeLoader()
        for await _ in Prefetcher(loader: loader, destination: .memory).prefetch(self.requests(origin, 1)) {}
        #expect(self.fixture.decodes.count == 1)
        #expect(try await loader.response(for: self.requests(origin, 1)[0]).source == .memory)
    }

    @Test func aReaderThatLeavesCancelsWhatIsLeft() async throws {
        let origin = try FaultyOrigin(["/0": .body(try makePNG()), "/1": .silence])
        let loader = self.fixture.makeLoader()
        for await _ in Prefetcher(loader: loader, concurrency: 2).prefetch(self.requests(origin, 2)) { break }
        await origin.waitForDisconnect(from: "/1")
    }

    @Test func twoListsShareTheLimitAndBothEnd() async throws {
        let body = try makePNG()
        let origin = try FaultyOrigin(Dictionary(uniqueKeysWithValues: (0..<10).map { ("/\($0)", .body(body)) }))
        let prefetcher = Prefetcher(loader: self.fixture.makeLoader(), concurrency: 1)
        async let first = prefetcher.prefetch(self.requests(origin, 10)).reduce(0) { count, _ in count + 1 }
        async let second = prefetcher.prefetch(self.requests(origin, 6)).reduce(0) { count, _ in count + 1 }
        #expect(await (first, second) == (10, 6))
        // They name the same pictures, of which each was fetched once.
        #expect((0..<10).allSatisfy { origin.requestCount(for: "/\($0)") == 1 })
    }

    @Test func aPausedPrefetcherBeginsNothingUntilItResumes() async throws {
        let origin = try FaultyOrigin(["/0": .body(try makePNG())])
        let prefetcher = Prefetcher(loader: self.fixture.makeLoader())
        prefetcher.pause()
        let stream = prefetcher.prefetch(self.requests(origin, 1))
        await until { prefetcher.waiterCount == 1 }
        #expect(prefetcher.isPaused)
        #expect(prefetcher.loadCount == 0)
        #expect(origin.connectionCount == 0)
        prefetcher.resume()
        #expect(await stream.reduce(0) { $0 + $1.completedCount } == 1)
    }

    @Test func cancellingEndsTheStreamsAndTheLoads() async throws {
        let origin = try FaultyOrigin(["/0": .silence, "/1": .silence])
        let prefetcher = Prefetcher(loader: self.fixture.makeLoader(), concurrency: 1)
        let stream = prefetcher.prefetch(self.requests(origin, 2))
        await origin.waitForRequests(for: "/0")
        prefetcher.cancelAll()
        for await _ in stream { Issue.record("what was cancelled is not reported") }
        await origin.waitForDisconnect(from: "/0")
        #expect(origin.requestCount(for: "/1") == 0)
    }

    @Test func listsEndWithTheirReaderAndThenThePrefetcher() async throws {
        let origin = try FaultyOrigin(["/0": .silence])
        var prefetcher: Prefetcher? = Prefetcher(loader: self.fixture.makeLoader())
        weak let observed = prefetcher
        var stream = prefetcher?.prefetch(self.requests(origin, 1))
        await origin.waitForRequests(for: "/0")
        prefetcher = nil
        #expect(observed != nil)
        #expect(stream != nil)
        stream = nil
        await origin.waitForDisconnect(from: "/0")
        await until { observed == nil }
    }

    @Test func aLoaderWithoutADiskCantPrefetchToDisk() async throws {
        let origin = try FaultyOrigin(["/0": .body(try makePNG())])
        let loader = self.fixture.makeLoader { $0.disk = nil }
        for await progress in Prefetcher(loader: loader).prefetch(self.requests(origin, 1)) {
            #expect(throws: LoadError.self) { try progress.latest.outcome.get() }
        }
    }
}
