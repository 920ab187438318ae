// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Images from bytes at hand, and the cache entries of a request.
@Suite(.waiting, .timeLimit(.minutes(5))) struct CachedImageTests {
    let fixture: LoaderFixture
    let origin: ScriptedOrigin
    let url: URL

    init() throws {
        self.origin = ScriptedOrigin(["/a": .body(try makePNG())])
        self.fixture = try LoaderFixture(origin: self.origin)
        self.url = self.origin.url("/a")
    }

    private var requests: Int { self.origin.requestCount(for: "/a") }

    // MARK: Bytes at hand

    @Test func `bytes become an image without a request`() async throws {
        let loader = self.fixture.makeLoader()
        let data = try Fixtures.data("flower.jpg")
        let image = try await loader.image(from: data, thumbnail: .fit(width: 60, height: 60))
        #expect((image.width, image.height) == (60, 40))
        #expect(await loader.cache.statistics().memory.count == 0)
    }

    @Test func `bytes that are no image are an error with the coder's code`() async throws {
        let loader = self.fixture.makeLoader()
        await #expect { try await loader.image(from: Data("no image".utf8)) } throws: { error in
            (error as? LoadError)?.code == .notAnImage
        }
    }

    @Test func `the limits hold for bytes that are here`() async throws {
        let loader = self.fixture.makeLoader { $0.limits.maximumPixels = 10 }
        let data = Data(try makePNG())
        await #expect { try await loader.image(from: data) } throws: { error in
            (error as? LoadError)?.code == .tooManyPixels
        }
    }

    @Test(arguments: ["camera.jpg", "camera.png", "camera.webp"])
    func `the metadata of an image is read from its bytes, and no pixel is decoded`(name: String) async throws {
        let data = try Data(contentsOf: Fixtures.url(name))
        self.origin.script("/camera", .body(data))
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: self.origin.url("/camera"), options: .waitForStore)
        let metadata = try await loader.metadata(for: request)
        #expect(metadata == (try ImageDecoder(data, registry: CoderRegistry()).metadata()))
        #expect(metadata.cameraMake != nil && metadata.exif != nil)
        #expect(try await loader.metadata(for: request) == metadata)
        #expect(self.origin.requestCount(for: "/camera") == 1)
        #expect(self.fixture.decodes.count == 0)
        await #expect {
            try await loader.metadata(for: ImageRequest(url: self.origin.url("/none")))
        } throws: { error in
            (error as? LoadError)?.code == .badStatus
        }
    }

    @Test func `nonsense is refused for bytes that are here as for requests`() async throws {
        let loader = self.fixture.makeLoader()
        let data = Data(try makePNG())
        func code(_ load: () async throws -> Image) async -> LoadError.Code? {
            do {
                _ = try await load()
                return nil
            } catch {
                return (error as? LoadError)?.code
            }
        }
        for side in [Int.min, -1, 0, .max] {
            let size = Resize.fit(width: side, height: side, upscales: true)
            #expect(await code { try await loader.image(from: data, thumbnail: size) } == .invalidSize)
        }
        for limit in [Int.min, -1, 0] {
            #expect(await code { try await loader.image(from: data, scaleDownLimit: limit) } == .invalidRequest)
        }
        #expect(await code { try await loader.image(from: data, scaleDownLimit: .max) } == nil)
    }

    // MARK: Storing

    @Test func `what is stored is loaded without a request`() async throws {
        let loader = self.fixture.makeLoader()
        let data = Data(try makePNG(width: 20))
        try await loader.store(data, for: ImageRequest(url: self.url))
        #expect(try await loader.image(for: self.url).width == 20)
        #expect(try await self.fixture.makeLoader().data(for: ImageRequest(url: self.url)) == data)
        #expect(self.requests == 0)
    }

    @Test func `what is stored takes the place of images of older bytes`() async throws {
        let loader = self.fixture.makeLoader()
        let thumbnail = ImageRequest(
            source: .init(url: self.url),
            rendering: .init(thumbnail: .stretch(width: 4, height: 4)),
            caching: .init(variants: .all),
            options: .waitForStore
        )
        #expect(try await loader.image(for: self.url).width == 8)
        let old = try await loader.response(for: thumbnail)
        try await loader.store(Data(makePNG(width: 20)), for: ImageRequest(url: self.url))
        #expect(try await loader.image(for: self.url).width == 20)
        let new = try await loader.response(for: thumbnail)
        #expect(new.metadata.bodyDigest != old.metadata.bodyDigest)
        #expect(self.requests == 1)
    }

    @Test func `a store waits for the fetch that is under way, and is newer`() async throws {
        let gate = Gate()
        self.origin.script("/a", .held(by: gate, body: try makePNG()))
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: self.url)
        let fetch = Task { try await loader.data(for: request) }
        await self.origin.waitForRequests(1, for: "/a")
        let data = Data(try makePNG(width: 20))
        let store = Task { try await loader.store(data, for: request) }
        await until { await loader.queueCount(of: request) == 1 }
        await gate.open()
        _ = try await fetch.value
        try await store.value
        #expect(try await loader.data(for: request) == data)
    }

    @Test func `headers that come with stored bytes say how long they are fresh`() async throws {
        let loader = self.fixture.makeLoader { $0.cachePolicy = .honorFreshness }
        let request = ImageRequest(url: self.url)
        let data = Data(try makePNG(width: 20))
        try await loader.store(data, for: request, headers: ["Cache-Control": "max-age=600"])
        #expect(try await loader.data(for: request) == data)
        #expect(self.requests == 0)
        try await loader.store(data, for: request, headers: ["Cache-Control": "max-age=0"])
        #expect(try await loader.data(for: request) != data)
        #expect(self.requests == 1)
    }

    @Test func `bytes that cannot be stored are an error`() async throws {
        let loader = self.fixture.makeLoader { $0.disk?.sizeLimit = 100 }
        let image = Data(try makePNG())
        let cases: [(Data, ImageRequest, LoadError.Code)] = [
            (Data("<html>".utf8), ImageRequest(url: self.url), .notAnImage),
            (image, ImageRequest(url: self.url), .cacheFailed),
            (image, ImageRequest(url: URL(filePath: "/image.png")), .cacheFailed),
            (image, ImageRequest(source: .init(url: self.url), caching: .init(originals: .memory)), .cacheFailed),
        ]
        for (data, request, code) in cases {
            await #expect { try await loader.store(data, for: request) } throws: { error in
                (error as? LoadError)?.code == code
            }
        }
    }

    @Test func `an image that is stored is found in memory`() async throws {
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: self.url, thumbnail: .fit(width: 4, height: 4))
        let image = try await loader.image(from: Data(makePNG(width: 20)))
        #expect(try await loader.store(image, for: request) == .stored)
        #expect(try await loader.response(for: request).source == .memory)
        #expect(self.requests == 0)
    }

    @Test func `an image that is stored has the scale, the lifetime and the extra data of its request`() async throws {
        let clock = TestClock()
        let loader = self.fixture.makeLoader(.neverRevalidate, by: clock)
        var request = ImageRequest(url: self.origin.url("/a@2x.png"))
        request.caching.lifetime = .seconds(10)
        request.caching.extra = ["album": "7"]
        try await loader.store(try await loader.image(from: Data(makePNG())), for: request)
        let response = try await loader.response(for: request)
        #expect(response.image.scale == 2)
        #expect(response.metadata.extra == ["album": "7"])
        clock.advance(by: 11)
        #expect(await !loader.contains(request))
    }

    // MARK: Lookup and removal

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness], [[:], ["Accept-Language": "de", "X-User": "1"]])
    func `a removal takes the original and all that was made of it, in both tiers`(
        policy: CachePolicy,
        headers: HeaderFields
    ) async throws {
        self.origin.script(
            "/a",
            .body(try makePNG(), headers: ["Cache-Control": "max-age=600", "Vary": "Accept-Language"])
        )
        self.origin.script("/b", .body(try makePNG()))
        let loader = self.fixture.makeLoader { $0.cachePolicy = policy }
        let other = ImageRequest(url: self.origin.url("/b"), options: .waitForStore)
        _ = try await loader.image(for: other)
        var requests = [ImageRequest(url: self.url, headers: headers, options: .waitForStore)]
        for side in 2...5 {
            var request = requests[0]
            request.thumbnail = .fit(width: side, height: side)
            request.caching.variants = .all
            requests.append(request)
        }
        for request in requests { _ = try await loader.image(for: request) }
        for request in requests { #expect(await loader.tiers(holding: request) == .all) }
        #expect(try await loader.remove(requests[2]))
        for request in requests { #expect(await loader.tiers(holding: request) == .none) }
        #expect(await !loader.contains(requests[0]))
        #expect(await loader.tiers(holding: other) == .all)
        #expect(self.fixture.cacheFiles().count == 1)
        #expect(try await !loader.remove(requests[0]))
    }

    @Test func `a removal finds what another loader has stored before`() async throws {
        let thumbnail = ImageRequest(
            source: .init(url: self.url),
            rendering: .init(thumbnail: .fit(width: 4, height: 4)),
            caching: .init(variants: .all),
            options: .waitForStore
        )
        _ = try await self.fixture.makeLoader().image(for: thumbnail)
        let loader = self.fixture.makeLoader()
        #expect(try await loader.remove(ImageRequest(url: self.url)))
        #expect(self.fixture.cacheFiles().isEmpty)
    }

    @Test func `an image only in memory is held by the memory alone`() async throws {
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(source: .init(url: self.url), caching: .init(originals: .memory))
        #expect(await loader.tiers(holding: request) == .none)
        _ = try await loader.image(for: request)
        #expect(await loader.tiers(holding: request) == .memory)
    }

    @Test func `a thumbnail is there where its decoded original is`() async throws {
        let loader = self.fixture.makeLoader { $0.disk = nil }
        let request = ImageRequest(
            url: self.url,
            thumbnail: .fit(width: 4, height: 4),
            cachePolicy: .cacheOnly
        )
        #expect(await !loader.contains(request))
        _ = try await loader.image(for: self.url)
        #expect(await loader.contains(request))
        #expect(await loader.tiers(holding: request) == .none)
        #expect(try await loader.image(for: request).width == 4)
    }

    // MARK: Files

    private func bytes(of file: CachedFile) -> Data {
        var data = Data(count: file.byteCount)
        let count = data.withUnsafeMutableBytes { pread(file.descriptor, $0.baseAddress, $0.count, file.offset) }
        #expect(count == file.byteCount)
        return data
    }

    @Test func `the file of an entry has its bytes, also after the entry was removed`() async throws {
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: self.url)
        #expect(try await loader.cachedFile(for: request) == nil)
        let data = try await loader.data(for: request)
        let file = try #require(try await loader.cachedFile(for: request))
        #expect(self.bytes(of: file) == data)
        #expect(file.metadata.bodyDigest == BodyDigest.value(of: data))
        let read = FileManager.default.contents(atPath: file.path).map { Data($0) }
        #expect(read?.dropFirst(file.offset) == data)
        try await loader.remove(request)
        #expect(try await loader.cachedFile(for: request) == nil)
        #expect(self.bytes(of: file) == data)
    }

    @Test func `the file of a variant has its own encoding`() async throws {
        let loader = self.fixture.makeLoader()
        let thumbnail = ImageRequest(
            source: .init(url: self.url),
            rendering: .init(thumbnail: .fit(width: 4, height: 4)),
            caching: .init(variants: .all),
            options: .waitForStore
        )
        _ = try await loader.image(for: thumbnail)
        let file = try #require(try await loader.cachedFile(for: thumbnail))
        #expect(try await loader.image(from: self.bytes(of: file)).width == 4)
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .revalidate])
    func `the metadata of a variant's file is about its own bytes, and that of its image about the original`(
        policy: CachePolicy
    ) async throws {
        let body = try makePNG(width: 40, height: 30)
        self.origin.script("/typed.png", .body(body, headers: ["Content-Type": "image/png", "ETag": "\"1\""]))
        let thumbnail = ImageRequest(
            source: .init(url: self.origin.url("/typed.png")),
            rendering: .init(thumbnail: .fit(width: 4, height: 4)),
            caching: .init(variants: .disk, policy: policy),
            options: .waitForStore
        )
        let first = try await self.fixture.makeLoader().response(for: thumbnail)
        // Under `revalidate` the loader stores the entry again with the confirmed metadata.
        let loader = self.fixture.makeLoader()
        for _ in 0..<2 {
            let response = try await loader.response(for: thumbnail)
            await loader.waitForPendingStores()
            #expect(response.metadata.mediaType == "image/png")
            #expect(response.metadata.formatName == "png")
            #expect(response.metadata.byteCount == body.count)
            #expect(response.metadata.extra == first.metadata.extra)
            #expect(response.image.sourceFormat == .png)
            let file = try #require(try await loader.cachedFile(for: thumbnail))
            let format = try #require(ImageFormat(sniffing: self.bytes(of: file)))
            #expect(format == .jpeg)
            #expect(file.metadata.formatName == "jpeg")
            #expect(file.metadata.mediaType == "image/jpeg")
            #expect(file.metadata.byteCount == file.byteCount)
            #expect(file.metadata.bodyDigest == response.metadata.bodyDigest)
        }
    }

    @Test func `a damaged file is no file, and leaves`() async throws {
        let request = ImageRequest(url: self.url, options: .waitForStore)
        _ = try await self.fixture.makeLoader().data(for: request)
        let path = try #require(self.fixture.cacheFiles().first)
        var bytes = try #require(FileManager.default.contents(atPath: path))
        bytes[bytes.count - 3] ^= 1
        try bytes.write(to: URL(filePath: path))
        #expect(try await self.fixture.makeLoader().cachedFile(for: request) == nil)
        #expect(self.fixture.cacheFiles().isEmpty)
    }
}
