import FoundationEssentials
import TestSupport
import Testing
import Tintype

@Suite(.timeLimit(.minutes(1))) struct PrefetcherTests {
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
        for await result in Prefetcher(loader: loader, concurrency: concurrency).prefetch(requests) {
            #expect(outcomes.updateValue((try? result.outcome.get()) != nil, forKey: result.request) == nil)
        }
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
        for await result in Prefetcher(loader: self.fixture.makeLoader()).prefetch(self.requests(origin, 1)) {
            #expect(throws: LoadError.self) { try result.outcome.get() }
        }
        #expect(self.fixture.cacheFiles().isEmpty)
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
}
