import FoundationEssentials
import TestSupport
import Testing
import TintypeConcurrency

@testable import Tintype

/// A download is as urgent as the most urgent of those who wait for it.
@Suite(.timeLimit(.minutes(1))) struct LoadPrioritiesTests {
    let fixture: LoaderFixture
    /// Holds the only connection, so that what follows has to wait for its turn.
    let door = Latch()
    let origin: FaultyOrigin

    init() throws {
        self.fixture = try LoaderFixture()
        let body = try makePNG()
        self.origin = try FaultyOrigin([
            "/door": .held(by: self.door, body: body), "/a": .body(body), "/b": .body(body), "/c": .body(body),
        ])
    }

    private func makeLoader() -> LoaderActor {
        self.fixture.makeLoader { $0.downloads.maximumTransfers = 1 }
    }

    private func request(_ path: String, _ priority: DownloadPriority = .normal) -> ImageRequest {
        var request = ImageRequest(url: self.origin.url(path))
        request.priority = priority
        return request
    }

    private func waitForWaiting(_ count: Int, in loader: LoaderActor) async {
        while await loader.downloads.counters.waiting < count { await Task.yield() }
    }

    /// Starts loads one after the other behind the held door, and gives the order in which they ended.
    private func order(of requests: [ImageRequest], waiting: Int) async throws -> [String] {
        let loader = self.makeLoader()
        let ended = Locked<[String]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            let held = self.request("/door")
            group.addTask { @Sendable in _ = try await loader.image(for: held) }
            await self.origin.waitForRequests(for: "/door")
            for (index, request) in requests.enumerated() {
                group.addTask { @Sendable in
                    _ = try await loader.image(for: request)
                    ended.withLock { if !$0.contains(request.url.path) { $0.append(request.url.path) } }
                }
                await self.waitForWaiting(min(index + 1, waiting), in: loader)
            }
            // The last one may have joined another; its wait has then begun once it is counted.
            while await loader.waiterCount < requests.count + 1 { await Task.yield() }
            self.door.open()
            try await group.waitForAll()
        }
        return ended.withLock { $0 }
    }

    @Test func theMostUrgentIsLoadedFirst() async throws {
        let requests = [self.request("/a", .low), self.request("/b"), self.request("/c", .veryHigh)]
        #expect(try await self.order(of: requests, waiting: 3) == ["/c", "/b", "/a"])
    }

    @Test func aCallerThatJoinsMakesTheLoadAsUrgentAsItself() async throws {
        let requests = [self.request("/a", .low), self.request("/b"), self.request("/a", .high)]
        #expect(try await self.order(of: requests, waiting: 2) == ["/a", "/b"])
    }

    @Test func nothingIsLeftOfAnEndedLoad() async throws {
        let priorities = LoadPriorities(downloads: DownloadActor())
        let key = CacheKey("a")
        await priorities.waiting(for: key, priority: .high) {
            await priorities.downloading(DownloadRequest(url: self.origin.url("/a")), for: key) { priority in
                #expect(priority == .high)
                #expect(priorities.count == 1)
            }
        }
        #expect(priorities.count == 0)
    }

    @Test func theOriginIsToldWhatTheCodersRead() async throws {
        let origin = try FaultyOrigin(["/a": .body(try makePNG())])
        _ = try await self.fixture.makeLoader().image(for: origin.url("/a"))
        let accept = try #require(origin.requestHeads(for: "/a").first)
        for type in ["image/jpeg", "image/png", "image/webp", "image/*;q=0.8"] { #expect(accept.contains(type)) }
        #expect(!accept.contains("image/avif"))
        let own = self.fixture.makeLoader { $0.downloads.acceptHeader = "image/png" }
        _ = try await own.image(for: ImageRequest(url: origin.url("/a"), options: .refresh))
        #expect(origin.requestHeads(for: "/a").last?.contains("Accept: image/png\r\n") == true)
    }
}
