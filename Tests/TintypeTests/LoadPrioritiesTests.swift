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
        await until { await loader.downloads.counters.waiting >= count }
    }

    /// Starts loads one after the other behind the held door, and gives the order in which they were asked for.
    private func order(of requests: [ImageRequest], waiting: Int) async throws -> [String] {
        let loader = self.makeLoader()
        try await withThrowingTaskGroup(of: Void.self) { group in
            let held = self.request("/door")
            group.addTask { @Sendable in _ = try await loader.image(for: held) }
            await self.origin.waitForRequests(for: "/door")
            for (index, request) in requests.enumerated() {
                group.addTask { @Sendable in _ = try await loader.image(for: request) }
                await self.waitForWaiting(min(index + 1, waiting), in: loader)
            }
            // The last one may have joined another; its wait has then begun once it is counted.
            await until { await loader.waiterCount >= requests.count + 1 }
            self.door.open()
            try await group.waitForAll()
        }
        return Array(self.origin.requestedPaths.drop { $0 == "/door" })
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
                #expect(priority() == .high)
                #expect(priorities.count == 1)
            }
        }
        #expect(priorities.count == 0)
    }

    @Test func aChangeBeforeTheDownloaderHeardOfTheDownloadCounts() async throws {
        let priorities = LoadPriorities(downloads: DownloadActor())
        let key = CacheKey("a")
        await priorities.waiting(for: key, priority: .low) {
            await priorities.downloading(DownloadRequest(url: self.origin.url("/a")), for: key) { priority in
                await priorities.waiting(for: key, priority: .veryHigh) { #expect(priority() == .veryHigh) }
                #expect(priority() == .low)
            }
        }
    }

    @Test func everyDownloadOfASourceFollowsThoseWhoWait() async throws {
        var configuration = DownloadActor.Configuration()
        configuration.maximumTransfers = 1
        let downloads = DownloadActor(configuration: configuration)
        let priorities = LoadPriorities(downloads: downloads)
        let events = downloads.events()
        let url = self.origin.url("/a")
        try await withThrowingTaskGroup(of: Void.self) { group in
            let held = DownloadRequest(url: self.origin.url("/door"))
            group.addTask { @Sendable in _ = try await downloads.response(for: held) }
            await self.origin.waitForRequests(for: "/door")
            for (index, name) in ["a1", "a2"].enumerated() {
                let request = DownloadRequest(url: url, headers: ["X-Name": name])
                group.addTask { @Sendable in
                    try await priorities.waiting(for: CacheKey("a"), priority: .low) {
                        _ = try await priorities.downloading(request, for: CacheKey("a")) { priority in
                            try await downloads.response(for: request, priority: priority())
                        }
                    }
                }
                await until { await downloads.counters.waiting >= index + 1 }
            }
            let other = DownloadRequest(url: self.origin.url("/b"))
            group.addTask { @Sendable in _ = try await downloads.response(for: other) }
            await until { await downloads.counters.waiting >= 3 }
            try await priorities.waiting(for: CacheKey("a"), priority: .high) {
                self.door.open()
                try await group.waitForAll()
            }
        }
        var paths: [String] = []
        for await event in events {
            guard case .receivedHead = event.kind else { continue }
            paths.append(event.url.path)
            if paths.count == 4 { break }
        }
        #expect(paths == ["/door", "/a", "/a", "/b"])
    }

    @Test func theOriginIsToldWhatTheCodersRead() async throws {
        let origin = try FaultyOrigin(["/a": .body(try makePNG())])
        _ = try await self.fixture.makeLoader().image(for: origin.url("/a"))
        let accept = try #require(origin.requestHeads(for: "/a").first)
        for type in ["image/jpeg", "image/png", "image/webp", "image/*;q=0.8"] { #expect(accept.contains(type)) }
        #expect(!accept.contains("image/avif"))
        let own = self.fixture.makeLoader { $0.downloads.acceptHeader = "image/png" }
        _ = try await own.image(for: ImageRequest(url: origin.url("/a"), cachePolicy: .reload))
        #expect(origin.requestHeads(for: "/a").last?.contains("Accept: image/png\r\n") == true)
    }
}
