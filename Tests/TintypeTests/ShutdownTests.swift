import FoundationEssentials
import TestSupport
import TestTraits
import Testing

@testable import Tintype

@Suite(.waiting, .timeLimit(.minutes(5))) struct ShutdownTests {
    let fixture: LoaderFixture
    let latch = Latch()
    let origin: FaultyOrigin

    init() throws {
        self.fixture = try LoaderFixture()
        let body = try makePNG()
        self.origin = try FaultyOrigin(["/held": .held(by: self.latch, body: body), "/a": .body(body)])
    }

    @Test func `loads under way are cancelled, down to their connection, and no other begins`() async throws {
        let loader = self.fixture.makeLoader()
        let held = self.origin.url("/held")
        let tasks = (0..<10).map { _ in Task { try await loader.image(for: held) } }
        await self.origin.waitForRequests(for: "/held")
        await loader.shutdown()
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        await self.origin.waitForDisconnect(from: "/held")
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: self.origin.url("/a")) }
        #expect(error?.code == .shutDown)
        #expect(await loader.loadCount == 0)
    }

    @Test func `loads under way may come to their ends first`() async throws {
        let loader = self.fixture.makeLoader()
        let held = self.origin.url("/held")
        let task = Task { try await loader.image(for: held) }
        await self.origin.waitForRequests(for: "/held")
        let end = Task { await loader.shutdown(finishesLoads: true) }
        self.latch.open()
        #expect(try await task.value.width == 8)
        await end.value
        #expect(try await self.fixture.makeLoader().response(for: ImageRequest(url: held)).source == .disk)
    }

    @Test func `bytes and variants that are to be stored are on disk at the end`() async throws {
        let loader = self.fixture.makeLoader { configuration in
            configuration.variantEncoder = { image, _ in
                // A store that takes its time.
                for _ in 0..<1_000 { await Task.yield() }
                return Data(try makePNG(width: image.width, height: image.height))
            }
        }
        var request = ImageRequest(url: self.origin.url("/a"), thumbnail: .fit(width: 4, height: 4))
        request.variantCaching = CacheUse()
        _ = try await loader.image(for: request)
        await loader.shutdown()
        let cache = self.fixture.makeLoader().cache
        #expect(await cache.contains(request.key, in: .disk))
        #expect(await cache.contains(request.sourceKey, in: .disk))
    }

    @Test func `pending stores of variants are waited for`() async throws {
        let gate = Gate()
        let loader = self.fixture.makeLoader { configuration in
            configuration.variantEncoder = { image, _ in
                await gate.wait()
                return Data(try makePNG(width: image.width, height: image.height))
            }
        }
        var request = ImageRequest(url: self.origin.url("/a"), thumbnail: .fit(width: 4, height: 4))
        request.variantCaching = CacheUse()
        _ = try await loader.image(for: request)
        #expect(await !loader.cache.contains(request.key, in: .disk))
        await gate.open()
        await loader.waitForPendingStores()
        #expect(await loader.cache.contains(request.key, in: .disk))
    }

    @Test func `a loader that is dropped ends its background work`() async throws {
        weak var dropped: LoaderActor?
        let hasBegun = Gate()
        let hasEnded = Gate()
        do {
            let loader = self.fixture.makeLoader { configuration in
                configuration.variantEncoder = { _, _ in
                    await hasBegun.open()
                    // Ends with its task.
                    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
                    for await _ in stream {}
                    continuation.finish()
                    await hasEnded.open()
                    return nil
                }
            }
            dropped = loader
            var request = ImageRequest(url: self.origin.url("/a"), thumbnail: .fit(width: 4, height: 4))
            request.variantCaching = CacheUse()
            _ = try await loader.image(for: request)
            await hasBegun.wait()
        }
        await hasEnded.wait()
        #expect(dropped == nil)
    }

    @Test func `loaders come and go, and leave no thread and no descriptor`() async throws {
        func round() async throws {
            let loader = self.fixture.makeLoader { $0.disk = nil }
            _ = try await loader.image(for: self.origin.url("/a"))
            await loader.shutdown()
        }
        // Without waiting for anything to go away.
        let kept = self.fixture.makeLoader { $0.disk = nil }
        _ = try await kept.image(for: self.origin.url("/a"))
        await kept.shutdown()
        await #expect(throws: DownloadError.self) {
            try await kept.downloads.response(for: DownloadRequest(url: self.origin.url("/a")))
        }
        for _ in 0..<20 { try await round() }
        let before = try Resources.now()
        for _ in 0..<60 { try await round() }
        await until { ((try? Resources.now().descriptors) ?? .max) <= before.descriptors + 16 }
    }
}
