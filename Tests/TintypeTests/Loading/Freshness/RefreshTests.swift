// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Loads that revalidate or reload because the caller says so, and loads that overlap with them.
@Suite(.waiting, .timeLimit(.minutes(5))) struct RefreshTests {
    let fixture: LoaderFixture
    let scripted = ScriptedOrigin()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.scripted)
    }

    private func collect(_ events: LoadEvents) async throws -> (cached: [ImageResponse], end: ImageResponse?) {
        var cached: [ImageResponse] = []
        var end: ImageResponse?
        for try await event in events {
            switch event {
            case .cached(let response):
                #expect(end == nil)
                cached.append(response)
            case .finished(let response): end = response
            case .progress, .preview: break
            }
        }
        return (cached, end)
    }

    @Test(arguments: [false, true]) func `the cached image comes first and then the fresh one`(
        isOnDiskOnly: Bool
    ) async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let first = self.fixture.makeLoader()
        _ = try await first.image(for: ImageRequest(url: origin.url, options: [.waitForStore]))
        let loader = isOnDiskOnly ? self.fixture.makeLoader() : first
        let request = ImageRequest(url: origin.url, options: [.waitForStore], cachePolicy: .revalidate)

        let unchanged = try await self.collect(loader.events(for: request))
        #expect(unchanged.cached.map(\.image.width) == [10])
        #expect(unchanged.cached.map(\.source) == [isOnDiskOnly ? .disk : .memory])
        #expect(unchanged.end?.revalidation == .notModified)
        #expect(unchanged.end?.image.pixels === unchanged.cached.first?.image.pixels)

        origin.revise()
        let changed = try await self.collect(loader.events(for: request))
        #expect(changed.cached.map(\.image.width) == [10])
        #expect(changed.end?.image.width == 11)
        #expect(changed.end?.revalidation == .modified)
        #expect(changed.end?.source == .network)
        // The caches now have the new image.
        #expect(try await loader.image(for: ImageRequest(url: origin.url)).width == 11)
        #expect(try await self.fixture.makeLoader().image(for: ImageRequest(url: origin.url)).width == 11)
        #expect(origin.requests.count == 3)
    }

    @Test func `with nothing cached there is only the end`() async throws {
        let origin = RevisingOrigin(at: self.scripted)
        let request = ImageRequest(url: origin.url, cachePolicy: .revalidate)
        let events = try await self.collect(self.fixture.makeLoader().events(for: request))
        #expect(events.cached.isEmpty)
        #expect(events.end?.revalidation == nil)
        #expect(origin.requests.count == 1)
    }

    @Test func `an image is the final one`() async throws {
        let origin = RevisingOrigin(at: self.scripted)
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: origin.url, cachePolicy: .revalidate)
        _ = try await loader.image(for: request)
        origin.revise()
        #expect(try await loader.image(for: request).width == 11)
        #expect(origin.requests[1]["If-None-Match"] == "\"0\"")
    }

    @Test func `a reload is unconditional and passes caches on the way`() async throws {
        let origin = RevisingOrigin(at: self.scripted)
        let loader = self.fixture.makeLoader()
        _ = try await loader.image(for: ImageRequest(url: origin.url))
        _ = try await loader.image(for: ImageRequest(url: origin.url, cachePolicy: .reload))
        #expect(origin.requests[1]["If-None-Match"] == nil)
        #expect(origin.requests.map { $0["Cache-Control"] } == [nil, "no-cache"])
    }

    @Test func `a reload waits for the fetch that began before and asks itself`() async throws {
        let gate = Gate()
        let origin = RevisingOrigin(at: self.scripted)
        let loader = self.fixture.makeLoader()
        origin.fail(with: .held(by: gate, body: try makePNG(width: 30)))
        async let old = loader.image(for: ImageRequest(url: origin.url))
        await origin.waitForRequests(1)
        origin.fail(with: nil)
        let request = ImageRequest(url: origin.url, cachePolicy: .reload)
        async let new = loader.image(for: request)
        await until { await loader.queueCount(of: request) == 1 }
        #expect(origin.requests.count == 1)
        await gate.open()
        #expect(try await old.width == 30)
        #expect(try await new.width == 10)
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness])
    func `what a reload brings replaces what was asked for before`(policy: CachePolicy) async throws {
        let gate = Gate()
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let loader = self.fixture.makeLoader { $0.cachePolicy = policy }
        let thumbnail = ImageRequest(url: origin.url, thumbnail: .fit(width: 100, height: 3))
        origin.fail(with: .held(by: gate, body: try makePNG(width: 30)))
        async let oldThumbnail = loader.image(for: thumbnail)
        async let oldImage = loader.image(for: ImageRequest(url: origin.url))
        await origin.waitForRequests(1)
        // Both loads wait for the old bytes.
        await until { await loader.bytesWaiterCount >= 2 }
        origin.fail(with: nil)
        let reload = ImageRequest(url: origin.url, options: [.waitForStore], cachePolicy: .reload)
        async let new = loader.image(for: reload)
        await until { await loader.queueCount(of: reload) == 1 }
        await gate.open()
        // Callers that came before the reload get the old image.
        #expect(try await oldImage.width == 30)
        #expect(try await oldThumbnail.width == 15)
        #expect(try await new.width == 10)
        let response = try await loader.response(for: ImageRequest(url: origin.url))
        #expect((response.source, response.image.width) == (.memory, 10))
        #expect(try await loader.image(for: thumbnail).width == 5)
        #expect(try await self.fixture.makeLoader().image(for: ImageRequest(url: origin.url)).width == 10)
        #expect(origin.requests.count == 2)
    }

    /// Overlapping loads of any kind leave nothing older than the last reload.
    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness, .revalidate])
    func `after a storm the newest image is everywhere`(policy: CachePolicy) async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let loader = self.fixture.makeLoader { $0.cachePolicy = policy }
        @Sendable func request(_ index: Int, _ policy: CachePolicy? = nil) -> ImageRequest {
            let thumbnail: Resize? = index % 3 == 0 ? nil : .stretch(width: 4 * (index % 3), height: 3)
            let options: LoadOptions = policy == nil ? [] : .waitForStore
            return ImageRequest(url: origin.url, thumbnail: thumbnail, options: options, cachePolicy: policy)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<200 {
                if index % 10 == 0 { origin.revise() }
                group.addTask {
                    let policy: CachePolicy? = index % 7 == 0 ? .reload : index % 5 == 0 ? .revalidate : nil
                    _ = try await loader.image(for: request(index, policy))
                }
            }
            try await group.waitForAll()
        }
        let last = try await loader.response(for: request(0, .reload))
        for index in 0..<3 {
            let response = try await loader.response(for: request(index))
            #expect(response.metadata.bodyDigest == last.metadata.bodyDigest)
        }
        #expect(try await loader.image(for: request(0)).width == 30)
        #expect(try await self.fixture.makeLoader().image(for: request(0)).width == 30)
        #expect(await loader.sourceCount <= 1)
    }
}
