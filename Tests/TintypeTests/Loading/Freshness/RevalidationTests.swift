// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// The conditions and results of revalidation.
@Suite(.waiting, .timeLimit(.minutes(5))) struct RevalidationTests {
    let fixture: LoaderFixture
    let clock = TestClock()
    let scripted = ScriptedOrigin()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.scripted)
    }

    private func makeLoader(
        _ policy: CachePolicy = .honorFreshness,
        _ change: (inout LoaderActor.Configuration) -> Void = { _ in }
    ) -> LoaderActor {
        self.fixture.makeLoader(policy, by: self.clock, change)
    }

    // MARK: Policies

    @Test func `what is fresh is served and what is stale is validated`() async throws {
        // The time that a busy machine takes for a response counts towards its age.
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url)
        #expect(try await loader.response(for: request).revalidation == nil)
        self.clock.advance(by: 500)
        #expect(try await loader.response(for: request).source == .memory)
        #expect(origin.requests.count == 1)
        self.clock.advance(by: 200)
        let validated = try await loader.response(for: request)
        #expect(validated.revalidation == .notModified)
        #expect(origin.requests.count == 2)
        #expect(origin.requests[1]["If-None-Match"] == "\"0\"")
        // The loader did not decode the same bytes again. They are fresh again, here and after a restart.
        #expect(self.fixture.decodes.count == 1)
        self.clock.advance(by: 500)
        #expect(try await loader.response(for: request).revalidation == nil)
        await loader.cache.waitForPendingStores()
        #expect(try await self.makeLoader().response(for: request).source == .disk)
        #expect(origin.requests.count == 2)
    }

    /// The fields of a response, the bounds of its freshness, and the resulting lifetime.
    struct Bounded: Sendable {
        let fields: HeaderFields
        var bounds = FreshnessBounds()
        /// The lifetime in seconds, or `nil` if the loader revalidates each time.
        let lifetime: Int?
    }

    @Test(arguments: [
        Bounded(fields: [:], lifetime: nil),
        Bounded(fields: [:], bounds: .init(defaultLifetime: .seconds(600)), lifetime: 600),
        Bounded(fields: ["ETag": "\"a\""], bounds: .init(defaultLifetime: .seconds(600)), lifetime: nil),
        Bounded(fields: ["Cache-Control": "max-age=0"], bounds: .init(defaultLifetime: .seconds(600)), lifetime: nil),
        Bounded(fields: ["Expires": "0"], bounds: .init(defaultLifetime: .seconds(600)), lifetime: nil),
        Bounded(fields: ["Cache-Control": "max-age=100"], bounds: .init(minimumLifetime: .seconds(600)), lifetime: 600),
        Bounded(fields: ["Cache-Control": "max-age=900"], bounds: .init(minimumLifetime: .seconds(600)), lifetime: 900),
        Bounded(fields: ["Cache-Control": "no-cache"], bounds: .init(minimumLifetime: .seconds(600)), lifetime: nil),
        Bounded(fields: ["Cache-Control": "no-store"], bounds: .init(minimumLifetime: .seconds(600)), lifetime: nil),
        Bounded(fields: ["Cache-Control": "max-age=900"], bounds: .init(maximumLifetime: .seconds(300)), lifetime: 300),
        Bounded(
            fields: [:],
            bounds: .init(defaultLifetime: .seconds(600), maximumLifetime: .seconds(300)),
            lifetime: 300
        ),
    ])
    func `lifetimes are within the bounds of the loader`(bounded: Bounded) async throws {
        self.scripted.script("/a.png", .body(try makePNG(width: 10), headers: bounded.fields))
        let loader = self.makeLoader { $0.freshnessBounds = bounded.bounds }
        let request = ImageRequest(url: self.scripted.url("/a.png"))
        _ = try await loader.image(for: request)
        guard let lifetime = bounded.lifetime else {
            _ = try await loader.image(for: request)
            #expect(self.scripted.requestCount(for: "/a.png") == 2)
            return
        }
        self.clock.advance(by: Double(lifetime) - 50)
        _ = try await loader.image(for: request)
        #expect(self.scripted.requestCount(for: "/a.png") == 1)
        self.clock.advance(by: 51)
        _ = try await loader.image(for: request)
        #expect(self.scripted.requestCount(for: "/a.png") == 2)
    }

    @Test func `what has changed replaces both tiers`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=60"], at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url, options: [.waitForStore])
        #expect(try await loader.image(for: request).width == 10)
        origin.revise()
        self.clock.advance(by: 61)
        let response = try await loader.response(for: request)
        #expect(response.revalidation == .modified)
        #expect(response.image.width == 11)
        #expect(try await loader.image(for: request).width == 11)
        #expect(try await self.makeLoader().image(for: request).width == 11)
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness, .revalidate])
    func `thumbnails of old bytes are not served`(policy: CachePolicy) async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let loader = self.makeLoader(policy)
        // The height stays the same, so the width shows which image a thumbnail was made from.
        let thumbnail = ImageRequest(
            source: .init(url: origin.url),
            rendering: .init(thumbnail: .fit(width: 100, height: 3)),
            caching: .init(variants: CacheUse())
        )
        let old = try await loader.image(for: thumbnail)
        for _ in 0..<10 { origin.revise() }
        #expect(try await loader.image(for: ImageRequest(url: origin.url, cachePolicy: .reload)).width == 20)
        let new = try await loader.image(for: thumbnail)
        #expect(old.width == 5)
        #expect(new.width == 10)
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness, .cacheOnly])
    func `a variant of bytes that were replaced before a restart is not served`(policy: CachePolicy) async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        var thumbnail = ImageRequest(
            source: .init(url: origin.url),
            rendering: .init(thumbnail: .fit(width: 100, height: 3)),
            caching: .init(variants: CacheUse(), policy: policy == .cacheOnly ? .neverRevalidate : policy),
            options: [.waitForStore]
        )
        #expect(try await self.makeLoader(policy).image(for: thumbnail).width == 5)
        for _ in 0..<10 { origin.revise() }
        // This loader does not know the thumbnail.
        let reload = ImageRequest(url: origin.url, options: [.waitForStore], cachePolicy: .reload)
        #expect(try await self.makeLoader(policy).image(for: reload).width == 20)
        thumbnail.cachePolicy = policy
        #expect(try await self.makeLoader(policy).image(for: thumbnail).width == 10)
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness])
    func `of the original no bytes are read for its variant`(policy: CachePolicy) async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let thumbnail = ImageRequest(
            source: .init(url: origin.url),
            rendering: .init(thumbnail: .fit(width: 5, height: 5)),
            caching: .init(variants: CacheUse()),
            options: [.waitForStore]
        )
        _ = try await self.makeLoader(policy).image(for: thumbnail)
        let loader = self.makeLoader(policy)
        #expect(try await loader.response(for: thumbnail).source == .disk)
        // The only hit is the variant itself.
        #expect(await loader.cache.statistics().disks.map(\.hits) == [1])
        #expect(self.fixture.decodes.count == 2)
    }

    /// The loader reads the bytes after the origin has confirmed them.
    ///
    /// If they are gone by then, it requests them all.
    @Test(arguments: [false, true])
    func `stale bytes are not in memory while their origin is asked`(areRemoved: Bool) async throws {
        let gate = Gate()
        let origin = RevisingOrigin(["Cache-Control": "max-age=60"], at: self.scripted)
        let request = ImageRequest(url: origin.url, options: [.waitForStore])
        _ = try await self.makeLoader().image(for: request)
        self.clock.advance(by: 61)
        var confirmation = ScriptedResponse.held(by: gate, body: [])
        confirmation.status = 304
        origin.fail(with: confirmation)
        let loader = self.makeLoader()
        async let response = loader.response(for: request)
        await origin.waitForRequests(2)
        #expect(origin.requests[1]["If-None-Match"] == "\"0\"")
        #expect(await loader.downloads.counters.bodyBytes == 0)
        #expect(await loader.cache.statistics().disks.map(\.hits) == [0])
        if areRemoved { try await loader.cache.remove(request.key, from: .disk) }
        origin.fail(with: nil)
        await gate.open()
        #expect(try await response.source == (areRemoved ? .network : .disk))
        #expect(try await response.image.width == 10)
        #expect(origin.requests.count == (areRemoved ? 3 : 2))
        #expect(origin.requests.last?["If-None-Match"] == (areRemoved ? nil : "\"0\""))
    }

    @Test(arguments: [true, false]) func `an image in memory alone is validated too`(hasDisk: Bool) async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=60"], at: self.scripted)
        let loader = self.makeLoader { if !hasDisk { $0.disk = nil } }
        let request = ImageRequest(source: .init(url: origin.url), caching: .init(originals: .memory))
        let first = try await loader.image(for: request)
        self.clock.advance(by: 61)
        let validated = try await loader.response(for: request)
        #expect((validated.source, validated.revalidation) == (.memory, .notModified))
        #expect(validated.image.pixels === first.pixels)
        #expect(try await loader.response(for: request).revalidation == nil)
        #expect(origin.requests.count == 2)
        origin.revise()
        self.clock.advance(by: 61)
        #expect(try await loader.image(for: request).width == 11)
        #expect(origin.requests.count == 3)
        // The disk never had the bytes, so the loader downloads them.
        #expect(try await loader.data(for: request).isEmpty == false)
    }

    @Test func `a variant on disk is validated without its original and not encoded again`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=60"], at: self.scripted)
        let encodings = DecodeCounter()
        func makeLoader() -> LoaderActor {
            self.makeLoader { configuration in
                configuration.variantEncoder = { image, _ in
                    encodings.increment()
                    return try PNGCoder().encode(image, as: .png, options: EncodeOptions())
                }
            }
        }
        let request = ImageRequest(
            source: .init(url: origin.url),
            rendering: .init(thumbnail: .fit(width: 5, height: 5)),
            caching: .init(originals: CacheUse(store: .none), variants: CacheUse()),
            options: [.waitForStore]
        )
        _ = try await makeLoader().image(for: request)
        for _ in 0..<2 {
            self.clock.advance(by: 61)
            let loader = makeLoader()
            let response = try await loader.response(for: request)
            #expect((response.source, response.revalidation) == (.disk, .notModified))
            await loader.cache.waitForPendingStores()
            #expect(try await makeLoader().response(for: request).revalidation == nil)
        }
        #expect(encodings.count == 1)
        #expect(origin.requests.map { $0["If-None-Match"] } == [nil, "\"0\"", "\"0\""])
        // The loader makes a new variant of a changed image.
        for _ in 0..<10 { origin.revise() }
        self.clock.advance(by: 61)
        #expect(try await makeLoader().response(for: request).revalidation == .modified)
        #expect(encodings.count == 2)
    }

    @Test func `a thumbnail is made of an original in memory that is still current`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=60"], at: self.scripted)
        let loader = self.makeLoader { $0.disk = nil }
        _ = try await loader.image(for: ImageRequest(url: origin.url))
        self.clock.advance(by: 61)
        let thumbnail = ImageRequest(url: origin.url, thumbnail: .fit(width: 5, height: 5))
        let response = try await loader.response(for: thumbnail)
        #expect((response.source, response.revalidation) == (.memory, .notModified))
        #expect(self.fixture.decodes.count == 1)
        #expect(origin.requests.count == 2)
    }

    @Test func `what the default stored against the origins wish is not reused`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "no-store, max-age=60"], at: self.scripted)
        let loader = self.makeLoader(.neverRevalidate)
        _ = try await loader.image(for: ImageRequest(url: origin.url, options: [.waitForStore]))
        let request = ImageRequest(url: origin.url, cachePolicy: .honorFreshness)
        #expect(try await loader.response(for: request).image.width == 10)
        #expect(origin.requests.count == 2)
        #expect(try await self.makeLoader().response(for: request).source == .network)
    }

    @Test func `the same bytes again are no modification`() async throws {
        let origin = RevisingOrigin(at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url)
        let first = try await loader.image(for: request)
        origin.fail(with: .body(try makePNG(width: 10)))
        let second = try await loader.response(for: request)
        #expect(second.revalidation == .notModified)
        #expect(second.image.pixels === first.pixels)
        #expect(self.fixture.decodes.count == 1)
    }

    @Test func `the default never asks again`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "no-store, max-age=0"], at: self.scripted)
        let loader = self.makeLoader(.neverRevalidate)
        let request = ImageRequest(url: origin.url, options: [.waitForStore])
        _ = try await loader.image(for: request)
        origin.revise()
        self.clock.advance(by: 1_000)
        #expect(try await loader.response(for: request).source == .memory)
        #expect(try await self.makeLoader(.neverRevalidate).response(for: request).source == .disk)
        #expect(origin.requests.count == 1)
    }

    @Test func `always asks each time`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let loader = self.makeLoader(.revalidate)
        let request = ImageRequest(url: origin.url)
        for index in 0..<3 {
            let response = try await loader.response(for: request)
            #expect(response.revalidation == (index == 0 ? nil : .notModified))
        }
        #expect(origin.requests.map { $0["Cache-Control"] } == ["max-age=0", "max-age=0", "max-age=0"])
        #expect(origin.requests.map { $0["If-None-Match"] } == [nil, "\"0\"", "\"0\""])
        #expect(self.fixture.decodes.count == 1)
    }

    @Test func `a requests policy counts before the loaders`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=0"], at: self.scripted)
        let loader = self.makeLoader(.honorFreshness)
        var request = ImageRequest(url: origin.url, cachePolicy: .neverRevalidate)
        for _ in 0..<2 { _ = try await loader.image(for: request) }
        #expect(origin.requests.count == 1)
        request.cachePolicy = nil
        _ = try await loader.image(for: request)
        #expect(origin.requests.count == 2)
    }

    @Test func `cache only serves what is stale`() async throws {
        let origin = RevisingOrigin(at: self.scripted)
        let loader = self.makeLoader()
        _ = try await loader.image(for: ImageRequest(url: origin.url))
        let offline = ImageRequest(url: origin.url, cachePolicy: .cacheOnly)
        #expect(try await loader.response(for: offline).source == .memory)
        #expect(origin.requests.count == 1)
    }

    // MARK: Stored responses

    @Test(arguments: ["no-store", "max-age=60, no-store"])
    func `no store is kept nowhere`(directives: String) async throws {
        let origin = RevisingOrigin(["Cache-Control": directives], at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url, options: [.waitForStore])
        for _ in 0..<2 { #expect(try await loader.response(for: request).source == .network) }
        #expect(self.fixture.cacheFiles().isEmpty)
        #expect(await loader.cache.tiers(holding: request.key, in: .all) == .none)
        #expect(origin.requests.count == 2)
    }

    @Test func `no store in a newer answer ends the old entry`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=1"], at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url, options: [.waitForStore])
        _ = try await loader.image(for: request)
        origin.setHeaders(["Cache-Control": "no-store"])
        self.clock.advance(by: 2)
        #expect(try await loader.response(for: request).revalidation == .notModified)
        #expect(await loader.cache.tiers(holding: request.sourceKey, in: .disk) == .none)
    }

    @Test func `a shared cache keeps nothing private`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "private, max-age=60"], at: self.scripted)
        let request = ImageRequest(url: origin.url, options: [.waitForStore])
        let shared = self.makeLoader { $0.isSharedCache = true }
        for _ in 0..<2 { _ = try await shared.image(for: request) }
        #expect(origin.requests.count == 2)
        for _ in 0..<2 { _ = try await self.makeLoader().image(for: request) }
        #expect(origin.requests.count == 3)
    }

    @Test func `variants of a resource are kept apart`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=60"], at: self.scripted)
        origin.vary(on: "Accept-Language")
        func request(_ language: String) -> ImageRequest {
            ImageRequest(url: origin.url, headers: ["Accept-Language": language, "X-Other": language])
        }
        for _ in 0..<3 {
            // Each round uses a loader with an empty memory.
            let loader = self.makeLoader()
            #expect(try await loader.image(for: request("en")).width == 12)
            #expect(try await loader.image(for: request("de-DE")).width == 15)
            await loader.cache.waitForPendingStores()
        }
        #expect(origin.requests.count == 2)
    }

    @Test func `credentials are never shared`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=60"], at: self.scripted)
        let loader = self.makeLoader()
        for name in ["Authorization", "Cookie"] {
            for value in ["a", "b", "a"] {
                _ = try await loader.data(for: ImageRequest(url: origin.url, headers: [name: value]))
            }
        }
        #expect(origin.requests.count == 4)
        // A preference such as `Accept-Language` selects nothing if the response does not vary on it.
        _ = try await loader.data(
            for: ImageRequest(url: origin.url, headers: ["Cookie": "a", "Accept-Language": "de"])
        )
        #expect(origin.requests.count == 4)
    }

    @Test func `an entry of an older version is validated by its tag`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=60"], at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url)
        try await loader.cache.storeAndWait(
            nil,
            data: Data(try makePNG(width: 10)),
            metadata: EntryMetadata(formatName: "png", etag: "\"0\""),
            for: request.sourceKey
        )
        let response = try await loader.response(for: request)
        #expect(response.revalidation == .notModified)
        #expect(response.metadata.response?.freshness.lifetime == 60)
    }

    @Test func `a page in place of a stale image leaves the old one`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=1"], at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url, options: [.waitForStore])
        _ = try await loader.image(for: request)
        self.clock.advance(by: 2)
        origin.fail(with: .body(Array("<html>try later</html>".utf8)))
        await #expect(throws: LoadError.self) { try await loader.image(for: request) }
        origin.fail(with: nil)
        #expect(try await loader.response(for: request).revalidation == .notModified)
    }

    // MARK: Unusual responses

    @Test func `a not modified about something else is not believed`() async throws {
        let origin = RevisingOrigin(at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url)
        _ = try await loader.image(for: request)
        origin.revise()
        let body = try makePNG(width: 30)
        origin.fail(
            with: .answer { request in
                guard request.headers["If-None-Match"] == nil else {
                    return .body([], status: 304, headers: ["ETag": "\"of-another\""])
                }
                return .body(body)
            }
        )
        let response = try await loader.response(for: request)
        #expect(response.revalidation == .modified)
        #expect(response.image.width == 30)
        #expect(origin.requests.count == 3)
    }

    @Test func `a callers own condition is answered`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=60"], at: self.scripted)
        let loader = self.makeLoader()
        let conditional = ImageRequest(url: origin.url, headers: ["If-None-Match": "\"0\""])
        for _ in 0..<2 {
            let error = await #expect(throws: LoadError.self) { try await loader.data(for: conditional) }
            #expect(error?.code == .notModified)
            #expect(error?.headers["ETag"] == "\"0\"")
            #expect(error?.headers["Cache-Control"] == "max-age=60")
            // The origin answers the first condition, and the cache answers the second.
            _ = try await loader.data(for: ImageRequest(url: origin.url))
        }
        #expect(origin.requests.count == 2)
    }
}
