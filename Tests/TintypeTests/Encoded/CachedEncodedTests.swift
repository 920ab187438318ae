// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Encoded images that a loader returns from memory at once, for event loops.
@Suite(.waiting, .timeLimit(.minutes(5))) struct CachedEncodedTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()
    let clock = TestClock()
    let url: URL

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
        self.url = self.origin.url("/a")
        let headers: HeaderFields = ["Cache-Control": "max-age=60, stale-while-revalidate=600"]
        self.origin.script("/a", .body(try makePNG(width: 20, height: 10), headers: headers))
    }

    private func makeLoader(
        _ policy: CachePolicy = .neverRevalidate,
        _ change: (inout LoaderActor.Configuration) -> Void = { _ in }
    ) -> LoaderActor {
        self.fixture.makeLoader(policy, by: self.clock) { configuration in
            configuration.disk = nil
            change(&configuration)
        }
    }

    private func makeRequest(_ policy: CachePolicy? = nil) -> ImageRequest {
        ImageRequest(url: self.url, thumbnail: .fit(width: 8, height: 8), cachePolicy: policy)
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness])
    func `an encoded image in memory is returned at once and counts as a hit`(policy: CachePolicy) async throws {
        let loader = self.makeLoader(policy)
        let request = self.makeRequest()
        #expect(loader.cachedEncoded(request, as: .png) == nil)
        let loaded = try await loader.encoded(request, as: .png)
        let activities = loader.activity()
        let cached = try #require(loader.cachedEncoded(request, as: .png))
        #expect((cached.source, cached.etag, cached.mediaType) == (.memory, loaded.etag, "image/png"))
        #expect(cached.data == loaded.data)
        #expect(cached.revalidation == nil)
        #expect(loader.cachedEncoded(request, as: .webp()) == nil)
        let memory = await loader.statistics().cache.memory
        // Only the load counted its miss.
        #expect((memory.encodedHits, memory.encodedMisses) == (1, 1))
        await loader.shutdown()
        let hits = await activities.reduce(into: 0) { if case .hit(.memory, _) = $1.kind { $0 += 1 } }
        #expect(hits == 1)
    }

    @Test func `a stale image is left to the load, which serves and revalidates it`() async throws {
        let loader = self.makeLoader(.honorFreshness)
        let request = self.makeRequest()
        _ = try await loader.encoded(request, as: .png)
        self.clock.advance(by: 100)
        #expect(loader.cachedEncoded(request, as: .png) == nil)
        #expect(self.origin.requestCount(for: "/a") == 1)
        #expect(try await loader.encoded(request, as: .png).revalidation == .inBackground)
        await loader.waitForRevalidations()
        #expect(loader.cachedEncoded(request, as: .png) != nil)
        self.clock.advance(by: 1_000)
        #expect(loader.cachedEncoded(request, as: .png) == nil)
    }

    @Test func `a request that needs a load has no cached answer`() async throws {
        let loader = self.makeLoader()
        _ = try await loader.encoded(self.makeRequest(), as: .png)
        #expect(loader.cachedEncoded(self.makeRequest(.reload), as: .png) == nil)
        #expect(loader.cachedEncoded(self.makeRequest(.cacheOnly), as: .png) != nil)
        var senseless = self.makeRequest()
        senseless.thumbnail = .fit(width: 0, height: 8)
        #expect(loader.cachedEncoded(senseless, as: .png) == nil)
    }

    @Test func `a loader that changes requests has no cached answer`() async throws {
        let loader = self.makeLoader { $0.optionsProcessor = { $0 } }
        _ = try await loader.encoded(self.makeRequest(), as: .png)
        #expect(loader.cachedEncoded(self.makeRequest(), as: .png) == nil)
        #expect(try await loader.encoded(self.makeRequest(), as: .png).source == .memory)
    }

    /// Covers only the default policy, because debug builds allocate the sets of flags that other policies compare.
    @Test(.enabled(if: AllocatedMemory.isMeasured)) func `a cached answer allocates no memory`() async throws {
        let loader = self.makeLoader()
        let (request, encoding) = (self.makeRequest(), OutputEncoding.webp(quality: 75))
        _ = try await loader.encoded(request, as: encoding)
        func hit() -> Int { loader.cachedEncoded(request, as: encoding)?.data.count ?? 0 }
        #expect(hit() > 0)
        #expect(AllocatedMemory.count { for _ in 0..<100 { _ = hit() } } == 0)
    }
}
