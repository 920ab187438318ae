// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

@Suite(.waiting, .timeLimit(.minutes(5))) struct ShutdownTests {
    let fixture: LoaderFixture
    let gate = Gate()
    let origin: ScriptedOrigin

    init() throws {
        let body = try makePNG()
        self.origin = ScriptedOrigin(["/held": .held(by: self.gate, body: body), "/a": .body(body)])
        self.fixture = try LoaderFixture(origin: self.origin)
    }

    @Test func `loads under way may come to their ends first`() async throws {
        let loader = self.fixture.makeLoader()
        let held = self.origin.url("/held")
        let task = Task { try await loader.image(for: held) }
        await self.origin.waitForRequests(for: "/held")
        let end = Task { await loader.shutdown(finishesLoads: true) }
        await self.gate.open()
        #expect(try await task.value.width == 8)
        await end.value
        #expect(try await self.fixture.makeLoader().response(for: ImageRequest(url: held)).source == .disk)
    }

    /// Returns when the loader refuses new loads.
    private func waitForShutdown(of loader: LoaderActor) async {
        let refused = ImageRequest(url: self.origin.url("/none"))
        await until {
            do {
                _ = try await loader.data(for: refused)
                return false
            } catch {
                return (error as? LoadError)?.code == .shutDown
            }
        }
    }

    @Test func `loads under way that may come to their ends get their bytes too`() async throws {
        var request = ImageRequest(
            source: .init(url: self.origin.url("/a")),
            rendering: .init(thumbnail: .fit(width: 4, height: 4)),
            caching: .init(variants: CacheUse()),
            options: [.waitForStore]
        )
        _ = try await self.fixture.makeLoader().image(for: request)
        let before = self.fixture.decodes.count
        let latch = Latch()
        let loader = self.fixture.makeLoader(heldBy: latch)
        request.options = [.keepData]
        // The loader decodes the variant on disk, and returns the bytes of the original.
        let task = Task { [request] in try await loader.response(for: request) }
        await until { self.fixture.decodes.count > before }
        let end = Task { await loader.shutdown(finishesLoads: true) }
        await self.waitForShutdown(of: loader)
        latch.open()
        #expect(try await task.value.data == Data(makePNG()))
        await end.value
    }

    /// Returns a loader that has an image, and stores the image's variant only after the gate opens.
    private func makeLoader(storingBehind gate: Gate) async throws -> (LoaderActor, ImageRequest) {
        let loader = self.fixture.makeLoader { configuration in
            configuration.variantEncoder = { image, _ in
                await gate.wait()
                return Data(try makePNG(width: image.width, height: image.height))
            }
        }
        var request = ImageRequest(url: self.origin.url("/a"), thumbnail: .fit(width: 4, height: 4))
        request.caching.variants = CacheUse()
        _ = try await loader.image(for: request)
        return (loader, request)
    }

    @Test func `bytes and variants that are to be stored are on disk at the end`() async throws {
        let gate = Gate()
        let (loader, request) = try await self.makeLoader(storingBehind: gate)
        let end = Task { await loader.shutdown() }
        // The store continues after the loader refuses new loads.
        await self.waitForShutdown(of: loader)
        await gate.open()
        await end.value
        let cache = self.fixture.makeLoader().cache
        #expect(await cache.contains(request.key, in: .disk))
        #expect(await cache.contains(request.sourceKey, in: .disk))
    }

    @Test func `pending stores of variants are waited for`() async throws {
        let gate = Gate()
        let (loader, request) = try await self.makeLoader(storingBehind: gate)
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
                    // The stream ends when the task is cancelled.
                    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
                    for await _ in stream {}
                    continuation.finish()
                    await hasEnded.open()
                    return nil
                }
            }
            dropped = loader
            var request = ImageRequest(url: self.origin.url("/a"), thumbnail: .fit(width: 4, height: 4))
            request.caching.variants = CacheUse()
            _ = try await loader.image(for: request)
            await hasBegun.wait()
        }
        await hasEnded.wait()
        #expect(dropped == nil)
    }
}
