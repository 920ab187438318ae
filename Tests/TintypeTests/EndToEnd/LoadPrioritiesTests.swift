// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// The priority of a download is the highest priority of its waiting callers.
///
/// The downloader is real.
@Suite(.waiting, .timeLimit(.minutes(5))) struct LoadPrioritiesTests {
    let fixture: LoaderFixture
    /// A latch that holds the only connection, so that later loads wait for their turn.
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

    /// Starts loads one after the other behind the held door, and returns the order of their requests.
    private func order(of requests: [ImageRequest], waiting: Int, changes: Int = 0) async throws -> [String] {
        let loader = self.makeLoader()
        try await withThrowingTaskGroup(of: Void.self) { group in
            let held = self.request("/door")
            group.addTask { @Sendable in _ = try await loader.image(for: held) }
            await self.origin.waitForRequests(for: "/door")
            for (index, request) in requests.enumerated() {
                group.addTask { @Sendable in _ = try await loader.image(for: request) }
                await self.waitForWaiting(min(index + 1, waiting), in: loader)
            }
            // The last load may have joined another one. In that case only the waiter count shows that it has begun.
            await until { await loader.waiterCount >= requests.count + 1 }
            await until { await loader.downloads.counters.reprioritized >= changes }
            self.door.open()
            try await group.waitForAll()
        }
        return Array(self.origin.requestedPaths.drop { $0 == "/door" })
    }

    @Test func `the most urgent is loaded first`() async throws {
        let requests = [self.request("/a", .low), self.request("/b"), self.request("/c", .veryHigh)]
        #expect(try await self.order(of: requests, waiting: 3) == ["/c", "/b", "/a"])
    }

    @Test func `a caller that joins makes the load as urgent as itself`() async throws {
        let requests = [self.request("/a", .low), self.request("/b"), self.request("/a", .high)]
        #expect(try await self.order(of: requests, waiting: 2, changes: 1) == ["/a", "/b"])
    }
}
