// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

/// The tiers that a load reads and fills, for originals and for variants.
@Suite(.waiting, .timeLimit(.minutes(5))) struct CacheUseTests {
    let fixture: LoaderFixture
    let origin: ScriptedOrigin
    let url: URL

    init() throws {
        self.origin = ScriptedOrigin(["/flower.jpg": .body(try Fixtures.data("flower.jpg"))])
        self.fixture = try LoaderFixture(origin: self.origin)
        self.url = self.origin.url("/flower.jpg")
    }

    private func makeThumbnailRequest(
        options: LoadOptions = [.waitForStore],
        originals: CacheUse = .all,
        variants: CacheUse = CacheUse(query: .all, store: .memory),
        cachePolicy: CachePolicy? = nil
    ) -> ImageRequest {
        ImageRequest(
            source: .init(url: self.url),
            rendering: .init(thumbnail: .fit(width: 400, height: 400)),
            caching: .init(originals: originals, variants: variants, policy: cachePolicy),
            options: options
        )
    }

    private var requests: Int { self.origin.requestCount(for: "/flower.jpg") }

    @Test func `a thumbnail is kept in memory and its original on disk`() async throws {
        let loader = self.fixture.makeLoader()
        let request = self.makeThumbnailRequest()
        _ = try await loader.image(for: request)
        #expect(await loader.cache.tiers(holding: request.key, in: .all) == .memory)
        #expect(await loader.cache.tiers(holding: request.sourceKey, in: .all) == .disk)
    }

    @Test(arguments: [CacheTiers.none, .memory, .disk, .all], [CacheTiers.none, .disk])
    func `stores go where the request says`(variants: CacheTiers, originals: CacheTiers) async throws {
        let loader = self.fixture.makeLoader()
        let request = self.makeThumbnailRequest(
            originals: .init(store: originals),
            variants: .init(store: variants)
        )
        let response = try await loader.response(for: request)
        #expect(response.storeError == nil)
        #expect(await loader.cache.tiers(holding: request.key, in: .all) == variants)
        #expect(await loader.cache.tiers(holding: request.sourceKey, in: .all) == originals)
    }

    @Test func `a stored variant needs neither its original nor the origin`() async throws {
        let request = self.makeThumbnailRequest(originals: .init(store: .none), variants: .init())
        let first = try await self.fixture.makeLoader().response(for: request)
        let loader = self.fixture.makeLoader()
        let second = try await loader.response(for: request)
        #expect(second.source == .disk)
        #expect((second.image.width, second.image.height) == (400, 267))
        #expect(second.image.sourceFormat == .jpeg)
        #expect(second.metadata == first.metadata)
        #expect(self.requests == 1)
        #expect(try await loader.response(for: request).source == .memory)
    }

    @Test func `a variant that is not waited for is stored all the same`() async throws {
        let loader = self.fixture.makeLoader()
        let request = self.makeThumbnailRequest(options: [], variants: .init())
        _ = try await loader.image(for: request)
        await until { await loader.cache.contains(request.key, in: .disk) }
    }

    @Test(arguments: [true, false])
    func `loads go on without a disk tier whose lock is kept`(isUsed: Bool) async throws {
        let change: (inout LoaderActor.Configuration) -> Void = { $0.disk?.lockTimeout = .milliseconds(50) }
        let request = ImageRequest(
            source: .init(url: self.url),
            caching: .init(originals: .disk),
            options: [.waitForStore]
        )
        if isUsed { _ = try await self.fixture.makeLoader().image(for: request) }
        let lock = try KeptLock(of: self.fixture.directory.path(of: "cache"))
        let loader = self.fixture.makeLoader(change)
        let response = try await loader.response(for: request)
        // A load finds stored entries without the lock.
        #expect(response.source == (isUsed ? .disk : .network))
        #expect(response.storeError?.code == (isUsed ? nil : .cacheFailed))
        var reload = request
        reload.cachePolicy = .reload
        let reloaded = try await loader.response(for: reload)
        #expect(reloaded.source == .network)
        #expect((reloaded.storeError?.underlyingError as? CacheError)?.code == .lockTimedOut)
        withExtendedLifetime(lock) {}
    }

    @Test func `a damaged variant is made anew from its original`() async throws {
        let request = self.makeThumbnailRequest(variants: .init())
        let loader = self.fixture.makeLoader()
        let metadata = try await loader.response(for: request).metadata
        try await loader.cache.storeAndWait(nil, data: Data([1, 2, 3]), metadata: metadata, for: request.key)
        let response = try await self.fixture.makeLoader().response(for: request)
        #expect(response.source == .disk)
        #expect(response.image.width == 400)
        // The loader made and stored the variant again, without a request to the origin.
        #expect(self.requests == 1)
        guard let entry = try await loader.cache.entry(for: request.key) else {
            Issue.record("not stored anew")
            return
        }
        #expect(entry.data.count > 3)
    }

    @Test func `a thumbnail is made from the full size in memory`() async throws {
        let loader = self.fixture.makeLoader()
        _ = try await loader.image(for: ImageRequest(source: .init(url: self.url), caching: .init(originals: .memory)))
        let decodes = self.fixture.decodes.count
        let response = try await loader.response(for: self.makeThumbnailRequest())
        #expect(response.source == .memory)
        #expect((response.image.width, response.image.height) == (400, 267))
        #expect(self.fixture.decodes.count == decodes)
        #expect(self.requests == 1)
    }

    @Test func `the full size in memory is left alone where the request says so`() async throws {
        let loader = self.fixture.makeLoader()
        _ = try await loader.image(for: ImageRequest(url: self.url))
        let requests = [
            self.makeThumbnailRequest(originals: .disk, variants: .none),
            self.makeThumbnailRequest(variants: .none, cachePolicy: .reload),
        ]
        for request in requests { #expect(try await loader.response(for: request).source != .memory) }
    }

    @Test func `the encoder decides what the disk keeps of a variant`() async throws {
        let bytes = try Fixtures.data("kodak-3.png")
        let loader = self.fixture.makeLoader { $0.variantEncoder = { _, _ in bytes } }
        let request = self.makeThumbnailRequest(variants: .init())
        _ = try await loader.image(for: request)
        guard let entry = try await loader.cache.entry(for: request.key) else {
            Issue.record("not stored")
            return
        }
        #expect(entry.data == bytes)
    }

    @Test func `an encoder that fails fails no load`() async throws {
        let loader = self.fixture.makeLoader { configuration in
            configuration.variantEncoder = { _, _ in throw CacheError(code: .diskFault, message: "It broke.") }
        }
        let response = try await loader.response(for: self.makeThumbnailRequest(variants: .init()))
        #expect(response.image.width == 400)
        #expect(response.storeError?.code == .cacheFailed)
    }

    @Test func `cache only finds a stored variant`() async throws {
        let request = self.makeThumbnailRequest(originals: .init(store: .none), variants: .init())
        _ = try await self.fixture.makeLoader().image(for: request)
        let offline = self.makeThumbnailRequest(
            options: [],
            originals: .init(store: .none),
            variants: .init(),
            cachePolicy: .cacheOnly
        )
        #expect(try await self.fixture.makeLoader().response(for: offline).source == .disk)
        await #expect(throws: LoadError.self) {
            try await self.fixture.makeLoader().image(for: ImageRequest(url: self.url, cachePolicy: .cacheOnly))
        }
    }

    @Test func `a tier that loaders share saves the second one its request`() async throws {
        let shared = MemoryTier()
        let request = ImageRequest(url: self.url, options: .waitForStore)
        let first = self.fixture.makeLoader { $0.tiers = [shared] }
        #expect(try await first.response(for: request).source == .network)
        let second = self.fixture.makeLoader {
            $0.tiers = [shared]
            $0.disk?.directory = self.fixture.directory.url(of: "other")
        }
        let response = try await second.response(for: request)
        #expect(response.source == .disk)
        #expect(response.metrics.tier == "shared")
        #expect(self.requests == 1)
        // The hit has filled the second loader's disk.
        await second.waitForPendingStores()
        let third = self.fixture.makeLoader { $0.disk?.directory = self.fixture.directory.url(of: "other") }
        #expect(try await third.response(for: request).metrics.tier == "disk")
        #expect(self.requests == 1)
    }

    @Test func `a reload reaches the tiers that loaders share`() async throws {
        let shared = MemoryTier()
        var request = ImageRequest(url: self.url, options: .waitForStore)
        _ = try await self.fixture.makeLoader { $0.tiers = [shared] }.data(for: request)
        shared.fails = true
        request.cachePolicy = .reload
        #expect(try await self.fixture.makeLoader { $0.tiers = [shared] }.data(for: request).count > 0)
        #expect(self.requests == 2)
    }
}
