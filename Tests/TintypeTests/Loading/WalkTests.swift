// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeFlights
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// The steps of a load, as `Docs/architecture.md` describes them.
@Suite(.waiting, .timeLimit(.minutes(5))) struct WalkTests {
    /// A fetcher of one image that reports its progress byte by byte.
    private struct OneImage: ImageFetching {
        let body: Data
        var gate: Gate?

        func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
            await self.gate?.wait()
            let count = Int64(self.body.count)
            for part in 1...count {
                observer.didProgress(TransferProgress(receivedBytes: part, expectedBytes: count))
            }
            return DownloadResponse(body: self.body, url: request.url)
        }
    }

    private let fixture: LoaderFixture
    private let request: ImageRequest

    init() throws {
        self.fixture = try LoaderFixture()
        self.request = ImageRequest(url: try #require(URL(string: "https://example.com/image.png")))
    }

    private func makeLoader(_ gate: Gate? = nil) throws -> LoaderActor {
        let fetcher = OneImage(body: Data(try makePNG()), gate: gate)
        return self.fixture.makeLoader { $0.fetcher = fetcher }
    }

    /// Returns the number of waits and flights in `work`.
    ///
    /// Each wait and each flight enters the actor once, and each flight has a task.
    private func steps(of loader: LoaderActor, _ work: () async throws -> Void) async throws -> LoadTable.ID {
        let before = await loader.stepCount
        try await work()
        return await loader.stepCount - before
    }

    @Test func `a cold load enters the actor four times and has two tasks`() async throws {
        let loader = try self.makeLoader()
        // The caller waits for the flight of the image, which waits for the flight of the bytes.
        #expect(try await self.steps(of: loader) { _ = try await loader.image(for: self.request) } == 2 + 2)
        let thumbnail = ImageRequest(url: self.request.url, thumbnail: .fit(width: 4, height: 4))
        // The thumbnail is made from the decoded original, without a load of bytes.
        #expect(try await self.steps(of: loader) { _ = try await loader.image(for: thumbnail) } == 1 + 1)
    }

    @Test func `what is in memory, and bytes that the disk has ready, enter no actor and have no task`() async throws {
        let loader = try self.makeLoader()
        let request = ImageRequest(url: self.request.url, options: [.waitForStore])
        _ = try await loader.image(for: request)
        #expect(try await loader.dataResponse(for: request).source == .disk)
        let warm = try await self.steps(of: loader) {
            _ = try await loader.image(for: self.request)
            _ = try await loader.data(for: self.request)
        }
        #expect(warm == 0)
    }

    @Test func `a thousand loads of one image have two tasks`() async throws {
        let gate = Gate()
        let loader = try self.makeLoader(gate)
        let shared = try await self.steps(of: loader) {
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<1_000 { group.addTask { try await loader.image(for: self.request).width } }
                await until { await loader.waiterCount == 1_000 }
                await gate.open()
                for try await width in group { #expect(width == 8) }
            }
        }
        #expect(shared == 1_000 + 1 + 2)
    }
}
