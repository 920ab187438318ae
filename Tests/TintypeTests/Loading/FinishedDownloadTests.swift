// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Downloads that the loader completes for the cache after their last caller has left.
@Suite(.waiting, .timeLimit(.minutes(5))) struct FinishedDownloadTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()
    let gate = Gate()
    let request: ImageRequest

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
        self.origin.script("/a", .held(by: self.gate, body: try makePNG()))
        self.request = ImageRequest(url: self.origin.url("/a"), options: .finishDownload)
    }

    /// Begins a load, and cancels it when the origin has received the request.
    private func abandon(_ loader: LoaderActor, _ request: ImageRequest) async throws {
        let task = Task { try await loader.image(for: request) }
        await self.origin.waitForRequests(1, for: "/a")
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await loader.waiterCount == 0)
    }

    @Test func `a download that no caller waits for goes on to the disk, as little urgent as can be`() async throws {
        let loader = self.fixture.makeLoader()
        try await self.abandon(loader, self.request)
        await until { self.origin.priorities(for: "/a").last == .veryLow }
        await self.gate.open()
        await loader.shutdown(finishesLoads: true)
        #expect(self.origin.cancellationCount(for: "/a") == 0)
        #expect(self.fixture.cacheFiles().count == 1)
        #expect(self.fixture.decodes.count == 0)
    }

    @Test func `a caller that comes meanwhile joins the download`() async throws {
        let loader = self.fixture.makeLoader()
        try await self.abandon(loader, self.request)
        let url = self.request.url
        let task = Task { try await loader.image(for: url) }
        await until { await loader.bytesWaiterCount == 1 }
        await self.gate.open()
        #expect(try await task.value.width == 8)
        #expect(self.origin.requestCount(for: "/a") == 1)
    }

    @Test func `a caller that joins and leaves without the option leaves the download going`() async throws {
        let loader = self.fixture.makeLoader()
        try await self.abandon(loader, self.request)
        let url = self.request.url
        let task = Task { try await loader.data(for: ImageRequest(url: url)) }
        await until { await loader.bytesWaiterCount == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await self.gate.open()
        await loader.shutdown(finishesLoads: true)
        #expect(self.fixture.cacheFiles().count == 1)
    }

    @Test func `the wish outlives those that leave, whichever leaves last`() async throws {
        let loader = self.fixture.makeLoader()
        let request = self.request
        let first = Task { try await loader.data(for: request) }
        await self.origin.waitForRequests(1, for: "/a")
        var same = request
        same.options = []
        same.priority = .veryHigh
        let second = Task { [same] in try await loader.data(for: same) }
        await until { await loader.bytesWaiterCount == 2 }
        for task in [first, second] {
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        await until { self.origin.priorities(for: "/a").last == .veryLow }
        await self.gate.open()
        await loader.shutdown(finishesLoads: true)
        #expect(self.fixture.cacheFiles().count == 1)
    }

    @Test func `without the option the download ends with its last caller`() async throws {
        let loader = self.fixture.makeLoader()
        try await self.abandon(loader, ImageRequest(url: self.request.url))
        await self.origin.waitForCancellations(1, for: "/a")
        await self.gate.open()
    }

    @Test func `a shutdown, and cancelAll, end downloads that no caller waits for`() async throws {
        for isShutdown in [true, false] {
            let loader = self.fixture.makeLoader()
            let before = self.origin.cancellationCount(for: "/a")
            let requests = self.origin.requestCount(for: "/a")
            let request = self.request
            let task = Task { try await loader.image(for: request) }
            await self.origin.waitForRequests(requests + 1, for: "/a")
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            if isShutdown { await loader.shutdown() } else { await loader.cancelAll() }
            await self.origin.waitForCancellations(before + 1, for: "/a")
        }
        await self.gate.open()
    }
}
