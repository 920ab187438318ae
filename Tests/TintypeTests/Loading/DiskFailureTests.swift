// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5))) struct DiskFailureTests {
    let fixture: LoaderFixture
    let origin: ScriptedOrigin

    init() throws {
        self.origin = ScriptedOrigin(["/image": .body(try makePNG())])
        self.fixture = try LoaderFixture(origin: self.origin)
    }

    @Test func `a damaged entry is a miss and is replaced`() async throws {
        let request = ImageRequest(url: self.origin.url("/image"), options: [.waitForStore])
        _ = try await self.fixture.makeLoader().image(for: request)
        let path = try #require(self.fixture.cacheFiles().first)
        var bytes = try Data(contentsOf: URL(filePath: path))
        bytes[bytes.count - 5] ^= 1
        try bytes.write(to: URL(filePath: path))
        #expect(try await self.fixture.makeLoader().response(for: request).source == .network)
        #expect(try await self.fixture.makeLoader().response(for: request).source == .disk)
    }

    @Test func `bytes on disk that are no image are replaced from the origin`() async throws {
        let request = ImageRequest(url: self.origin.url("/image"), options: [.waitForStore])
        let loader = self.fixture.makeLoader()
        let broken = Data(try makePNG().dropLast(20))
        try await loader.cache.storeAndWait(
            nil,
            data: broken,
            metadata: EntryMetadata(formatName: "png"),
            for: request.sourceKey
        )
        #expect(try await loader.response(for: request).source == .network)
        #expect(try await self.fixture.makeLoader().response(for: request).source == .disk)
        #expect(self.origin.requestCount(for: "/image") == 1)
    }

    @Test func `an unwritable folder never fails a load`() async throws {
        // A file takes the place of the cache folder, so that not even root can write there.
        let path = try self.fixture.directory.write([1], to: "file")
        let loader = self.fixture.makeLoader { $0.disk?.directory = URL(filePath: path).appending(path: "cache") }
        let waiting = ImageRequest(url: self.origin.url("/image"), options: [.waitForStore])
        let response = try await loader.response(for: waiting)
        #expect(response.image.width == 8)
        #expect(response.storeError?.code == .cacheNotWritable)
        #expect(response.storeError?.message.contains(path) == true)
        #expect(try await loader.response(for: waiting).source == .memory)
    }

    @Test(arguments: [true, false]) func `observers are told once that the folder cannot be written`(
        waits: Bool
    ) async throws {
        let path = try self.fixture.directory.write([1], to: "file")
        let handled = DecodeCounter()
        let observer = StoreErrorObserver()
        let loader = self.fixture.makeLoader {
            $0.disk?.directory = URL(filePath: path).appending(path: "cache")
            $0.disk?.storeErrorHandler = { _ in handled.increment() }
            $0.observers = [observer]
        }
        for width in [3, 4, 5] {
            let request = ImageRequest(
                source: .init(url: self.origin.url("/image")),
                rendering: .init(thumbnail: .stretch(width: width, height: 3)),
                caching: .init(variants: .all, policy: .reload),
                options: waits ? .waitForStore : []
            )
            _ = try await loader.image(for: request)
            await loader.waitForPendingStores()
        }
        #expect(observer.errors.map(\.code) == [.cacheNotWritable])
        #expect(observer.errors.first?.message.contains(path) == true)
        #expect(handled.count == (waits ? 0 : 3))
        #expect(await loader.statistics().cache.disks.first?.storeErrors == 6)
    }

    @Test func `bytes of the program without a disk tier are said not to be stored`() async throws {
        let loader = self.fixture.makeLoader { $0.disk = nil }
        let (data, request) = (Data(try makePNG()), ImageRequest(url: self.origin.url("/given")))
        let error = await #expect(throws: LoadError.self) { try await loader.store(data, for: request) }
        #expect(error?.code == .cacheFailed)
        #expect(error?.message.contains("disk tier") == true)
        let strict = self.fixture.makeLoader { $0.cachePolicy = .honorFreshness }
        let refusal = await #expect(throws: LoadError.self) {
            try await strict.store(data, for: request, headers: ["Cache-Control": "no-store"])
        }
        #expect(refusal?.message.contains("no-store") == true)
        try await strict.store(data, for: request, headers: ["Cache-Control": "max-age=60"])
        #expect(await strict.contains(request))
    }

    @Test func `bytes of the program that another call removes at once have been stored`() async throws {
        let disk = DiskCache(DiskCache.Configuration(directory: self.fixture.directory.url(of: "cache")))
        let removals = DecodeCounter()
        let tier = HeldTier(
            disk,
            didStore: { key, _ in
                if (try? await disk.remove(key)) == true { removals.increment() }
            }
        )
        let loader = self.fixture.makeLoader { $0.cache = CacheActor(tiers: [tier]) }
        let request = ImageRequest(url: self.origin.url("/given"))
        try await loader.store(Data(makePNG()), for: request)
        #expect(removals.count == 1)
        #expect(await !loader.contains(request))
    }

    @Test(.enabled(if: SmallDisk.isPossible)) func `a full disk never fails a load nor damages what is there`()
        async throws
    {
        let disk = try SmallDisk(byteCount: 256 << 10, at: self.fixture.directory.path(of: "small"))
        defer { disk.unmount() }
        let loader = self.fixture.makeLoader { $0.disk?.directory = URL(filePath: disk.path).appending(path: "cache") }
        let small = ImageRequest(url: self.origin.url("/image"), options: [.waitForStore])
        #expect(try await loader.response(for: small).storeError == nil)
        self.origin.script("/large", .body(try Fixtures.data("kodak-3.png")))
        let large = ImageRequest(url: self.origin.url("/large"), options: [.waitForStore])
        let response = try await loader.response(for: large)
        #expect(response.image.width == 768)
        #expect(response.storeError?.code == .diskFull)
        #expect(response.storeError?.message.hasSuffix(".") == true)
        try await loader.cache.removeAll(from: .memory)
        #expect(try await loader.response(for: small).source == .disk)
    }
}

/// An observer that records store errors.
final class StoreErrorObserver: LoadObserver {
    private let state = Locked<[LoadError]>([])

    var errors: [LoadError] { self.state.withLock { $0 } }

    func loader(didObserve activity: LoadActivity) {}

    func loader(didFailToStore error: LoadError) {
        self.state.withLock { $0.append(error) }
    }
}
