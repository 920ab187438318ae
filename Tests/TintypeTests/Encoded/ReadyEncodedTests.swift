// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Encoded images that a loader reads from disk without a flight, and changes during the read.
@Suite(
    .waiting,
    .timeLimit(.minutes(5)),
    .enabled("the file system reads without waiting") { try await canReadWithoutWaiting() }
)
struct ReadyEncodedTests {
    let fixture: LoaderFixture
    let scripted = ScriptedOrigin()
    let origin: RevisingOrigin
    let clock = TestClock()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.scripted)
        self.origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
    }

    private func makeRequest(_ policy: CachePolicy? = nil, variantCaching: CacheUse = .none) -> ImageRequest {
        ImageRequest(
            source: .init(url: self.origin.url),
            rendering: .init(thumbnail: .fit(width: 8, height: 8)),
            caching: .init(variants: variantCaching, policy: policy),
            options: .waitForStore
        )
    }

    /// Returns a loader that has not yet seen the encoded image on its disk, and the digest of that image's body.
    private func makeLoader(
        _ policy: CachePolicy = .neverRevalidate
    ) async throws -> (loader: LoaderActor, body: UInt64?) {
        let body = try await self.fixture.makeLoader(policy, by: self.clock).encoded(self.makeRequest(), as: .png)
            .metadata.bodyDigest
        let loader = self.fixture.makeLoader(policy, by: self.clock)
        // Opens the disk folder in advance, because opening it takes a wait.
        #expect(await loader.cache.contains(self.key, in: .disk))
        return (loader, body)
    }

    private func read(_ loader: LoaderActor, _ caching: CacheUse = .all) -> ReadyEncoded? {
        ReadyEncoded(self.makeRequest(), as: .png, caching, services: loader.services, changes: loader.changes)
    }

    private func memoryEntry(_ loader: LoaderActor) -> EncodedEntry? {
        let encoding = OutputEncoding.png.number
        return loader.cache.memory.encodedEntry(for: self.makeRequest().key, encoding: encoding, countsMiss: false)
    }

    private var key: CacheKey { OutputEncoding.png.key(of: self.makeRequest().key) }

    // MARK: Without changes

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness])
    func `a ready image needs no flight, and is in memory then`(policy: CachePolicy) async throws {
        let (loader, body) = try await self.makeLoader(policy)
        let response = try await loader.encoded(self.makeRequest(), as: .png)
        #expect((response.source, response.metadata.bodyDigest) == (.disk, body))
        #expect(await loader.stepCount == 0)
        #expect(try await loader.encoded(self.makeRequest(), as: .png).source == .memory)
        let statistics = await loader.statistics()
        #expect(statistics.encoded.hits == [.disk: 1])
        #expect(self.origin.requests.count == 1)
    }

    @Test func `a ready image that its call keeps out of memory stays out`() async throws {
        let (loader, body) = try await self.makeLoader()
        for _ in 0..<2 {
            let response = try await loader.encoded(self.makeRequest(), as: .png, caching: .disk)
            #expect((response.source, response.metadata.bodyDigest) == (.disk, body))
        }
        #expect(self.memoryEntry(loader) == nil)
        // A newer body still makes the image obsolete.
        self.origin.revise()
        _ = try await loader.data(for: self.makeRequest(.reload))
        #expect(await !loader.cache.contains(self.key, in: .disk))
    }

    @Test func `a ready image that is stale needs a flight`() async throws {
        let (loader, _) = try await self.makeLoader(.honorFreshness)
        #expect(self.read(loader) != nil)
        self.clock.advance(by: 601)
        #expect(self.read(loader) == nil)
    }

    @Test func `a cancelled call throws, and so does one after the shutdown`() async throws {
        let (loader, _) = try await self.makeLoader()
        let request = self.makeRequest()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await loader.encoded(request, as: .png)
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        await loader.shutdown()
        await #expect { try await loader.encoded(request, as: .png) } throws: { ($0 as? LoadError)?.code == .shutDown }
    }

    // MARK: Changes meanwhile

    /// The ways in which a newer body arrives.
    enum Renewal: CaseIterable {
        case reloadOfBytes, reloadOfBytesThatNothingStores, reloadOfEncoded, storeOfBytes
    }

    private func renew(_ renewal: Renewal, in loader: LoaderActor) async throws {
        self.origin.revise()
        var request = self.makeRequest(.reload)
        switch renewal {
        case .reloadOfBytes: _ = try await loader.data(for: request)
        case .reloadOfBytesThatNothingStores:
            request.caching.originals = .none
            _ = try await loader.data(for: request)
        case .reloadOfEncoded: _ = try await loader.encoded(request, as: .png)
        case .storeOfBytes:
            let body = Data(try makePNG(width: 30, height: 20))
            try await loader.store(body, for: self.makeRequest(), headers: ["Cache-Control": "max-age=600"])
        }
    }

    @Test(arguments: Renewal.allCases, [CachePolicy.neverRevalidate, .honorFreshness])
    func `a newer body that comes during the reading wins`(renewal: Renewal, policy: CachePolicy) async throws {
        let (loader, body) = try await self.makeLoader(policy)
        let reading = try #require(self.read(loader))
        try await self.renew(renewal, in: loader)
        // The call began before the newer body came. It may get the older image, but no later call may.
        _ = await reading.response(from: loader)
        #expect(self.memoryEntry(loader)?.metadata.bodyDigest != body)
        #expect(try await loader.encoded(self.makeRequest(), as: .png).metadata.bodyDigest != body)
    }

    @Test(arguments: Renewal.allCases, [CachePolicy.neverRevalidate, .honorFreshness])
    func `a newer body that comes after the reading removes the image`(
        renewal: Renewal,
        policy: CachePolicy
    ) async throws {
        let (loader, body) = try await self.makeLoader(policy)
        _ = try #require(await self.read(loader)?.response(from: loader))
        #expect(self.memoryEntry(loader)?.metadata.bodyDigest == body)
        try await self.renew(renewal, in: loader)
        #expect(self.memoryEntry(loader)?.metadata.bodyDigest != body)
        #expect(try await loader.encoded(self.makeRequest(), as: .png).metadata.bodyDigest != body)
    }

    @Test func `an image is not served if the loader knows of a newer body`() async throws {
        let (loader, body) = try await self.makeLoader()
        let reading = try #require(self.read(loader))
        self.origin.revise()
        // The loader remembers a body as long as it has an image made from it.
        _ = try await loader.image(for: ImageRequest(url: self.origin.url, cachePolicy: .reload))
        #expect(await reading.response(from: loader) == nil)
        #expect(self.memoryEntry(loader) == nil)
        #expect(try await loader.encoded(self.makeRequest(), as: .png).metadata.bodyDigest != body)
    }

    @Test func `an image of bytes that another process has replaced is not served`() async throws {
        let (loader, body) = try await self.makeLoader()
        let other = self.fixture.makeLoader()
        self.origin.revise()
        _ = try await other.data(for: self.makeRequest(.reload))
        #expect(self.read(loader) == nil)
        #expect(try await loader.encoded(self.makeRequest(), as: .png).metadata.bodyDigest != body)
    }

    @Test(arguments: [true, false]) func `a removal wins`(isDuringReading: Bool) async throws {
        let (loader, _) = try await self.makeLoader()
        let reading = try #require(self.read(loader))
        if !isDuringReading { _ = await reading.response(from: loader) }
        #expect(try await loader.remove(self.makeRequest()))
        if isDuringReading { _ = await reading.response(from: loader) }
        #expect(self.memoryEntry(loader) == nil)
        #expect(try await loader.encoded(self.makeRequest(), as: .png).source == .network)
    }

    @Test(arguments: [true, false])
    func `an image that the program stores wins`(isDuringReading: Bool) async throws {
        let (loader, _) = try await self.makeLoader()
        let request = self.makeRequest(variantCaching: .memory)
        let read = { ReadyEncoded(request, as: .png, .all, services: loader.services, changes: loader.changes) }
        let reading = try #require(read())
        if !isDuringReading { _ = await reading.response(from: loader) }
        try await loader.store(try makeGray(77), for: request)
        if isDuringReading { _ = await reading.response(from: loader) }
        #expect(self.memoryEntry(loader) == nil)
        #expect(read() == nil)
        let response = try await loader.encoded(request, as: .png)
        #expect(try await loader.image(from: response.data).pixels.sample(0, 0) == 77)
    }

    @Test func `another origin's body does not keep an image out of memory`() async throws {
        let (loader, body) = try await self.makeLoader()
        let reading = try #require(self.read(loader))
        let own = loader.services.rules.resourceKey(of: self.makeRequest())
        let mark = loader.changes.mark(of: own)
        // One path in 256 shares the counter, so find one that does not.
        let path = (0..<10_000).lazy.map { "/other\($0)" }.first { path in
            let other = loader.services.rules.resourceKey(of: ImageRequest(url: self.scripted.url(path)))
            return loader.changes.mark(of: other).index != mark.index
        }
        self.scripted.script(try #require(path), .body(try makePNG()))
        _ = try await loader.data(for: ImageRequest(url: self.scripted.url(try #require(path))))
        _ = await reading.response(from: loader)
        #expect(self.memoryEntry(loader)?.metadata.bodyDigest == body)
    }
}

private func canReadWithoutWaiting() async throws -> Bool {
    let folder = try TemporaryDirectory()
    let cache = DiskCache(DiskCache.Configuration(directory: folder.url(of: "cache")))
    let key = CacheKey("a")
    try await cache.store(Data([1]), metadata: EntryMetadata(), for: key)
    return cache.readyEntry(for: key) != nil
}
