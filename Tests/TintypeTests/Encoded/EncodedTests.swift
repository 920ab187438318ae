// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Images for a server: encoded once, cached, and found without a decode.
@Suite(.waiting, .timeLimit(.minutes(5))) struct EncodedTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()
    let clock = TestClock()
    let url: URL

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
        self.url = self.origin.url("/a")
        self.origin.script("/a", .body(try makePNG(width: 20, height: 10)))
    }

    private func makeLoader(_ change: (inout LoaderActor.Configuration) -> Void = { _ in }) -> LoaderActor {
        let clock = self.clock
        return self.fixture.makeLoader { configuration in
            configuration.now = { clock.now }
            configuration.memory.now = { clock.now }
            configuration.disk?.now = { clock.now }
            change(&configuration)
        }
    }

    private var requests: Int { self.origin.requestCount(for: "/a") }
    private var decodes: Int { self.fixture.decodes.count }

    private func makeRequest(_ policy: CachePolicy? = nil) -> ImageRequest {
        ImageRequest(
            source: .init(url: self.url),
            rendering: .init(thumbnail: .fit(width: 8, height: 8)),
            caching: .init(variants: .none, policy: policy),
            options: .waitForStore
        )
    }

    // MARK: Results

    @Test(arguments: [
        (OutputEncoding.jpeg(quality: 70), "image/jpeg"), (.webp(quality: 75), "image/webp"), (.png, "image/png"),
    ])
    func `an encoded image has its bytes, type, size and tag`(
        encoding: OutputEncoding,
        mediaType: String
    ) async throws {
        let loader = self.makeLoader()
        let response = try await loader.encoded(self.makeRequest(), as: encoding)
        #expect(response.mediaType == mediaType)
        #expect((response.width, response.height) == (8, 4))
        let image = try await loader.image(from: response.data)
        #expect((image.width, image.height) == (8, 4))
        #expect(image.sourceFormat == encoding.format)
        #expect(response.etag == "\"\(BodyDigest.tag(of: response.data))\"")
        #expect(response.source == .network)
        #expect(response.metrics.encode > .zero)
        #expect(response.metrics.decode > .zero)
    }

    @Test(arguments: [
        ("image/webp", "image/webp"), ("image/x-icon", "image/x-icon"), ("", Self.bytes), ("text/html", Self.bytes),
        ("image/svg+xml", Self.bytes), ("image/SVG+xml", Self.bytes), ("image/", Self.bytes),
        ("image/png\r\nX-A: b", Self.bytes), ("image/png, text/html", Self.bytes),
    ])
    func `an entry that others wrote is sent as an image or as bytes, never as a document`(type: String, sent: String) {
        let metadata = EntryMetadata(extra: ["encoded-type": type])
        let entry = EncodedEntry(key: CacheKey("a"), data: Data(), metadata: metadata)
        #expect(EncodedResponse(entry, source: .disk).mediaType == sent)
    }

    private static let bytes = "application/octet-stream"

    @Test func `each option of an encoding makes another image`() {
        let key = CacheKey("https://example.org/a")
        var options = EncodeOptions()
        var keys = [OutputEncoding(.jpeg, options: options).key(of: key)]
        keys.append(OutputEncoding(.webp, options: options).key(of: key))
        let changes: [(inout EncodeOptions) -> Void] = [
            { $0.quality = 79 }, { $0.background.red = 1 }, { $0.background.green = 1 }, { $0.background.blue = 1 },
            { $0.isProgressive = true }, { $0.chromaSubsampling = .none }, { $0.chromaSubsampling = .half },
            { $0.compression = .lossless }, { $0.compression = .nearLossless(1) },
            { $0.compression = .nearLossless(2) },
            { $0.pngLevel = 1 }, { $0.pngFilter = .none }, { $0.webpEffort = 2 }, { $0.maximumByteCount = 1 },
            { $0.maximumByteCount = 2 },
            { $0.requiresMaximumByteCount = false },
            { $0.isDithered = false }, { $0.metadata.exif = Data([1]) }, { $0.metadata.exif = Data([2]) },
            { $0.metadata.xmp = Data([1]) }, { $0.metadata.colorProfile = Data([1]) },
        ]
        for change in changes {
            options = EncodeOptions()
            change(&options)
            keys.append(OutputEncoding(.jpeg, options: options).key(of: key))
        }
        #expect(Set(keys).count == changes.count + 2)
        #expect(keys.allSatisfy { $0.isOfFamily(of: key) })
    }

    @Test func `lifetime and age are those of the origin's response`() async throws {
        self.origin.script("/a", .body(try makePNG(), headers: ["Cache-Control": "max-age=600", "Age": "100"]))
        let loader = self.makeLoader { $0.cachePolicy = .honorFreshness }
        let response = try await loader.encoded(self.makeRequest(), as: .png)
        #expect(response.freshnessLifetime == .seconds(600))
        let age = response.age(at: self.clock.now.addingTimeInterval(50))
        #expect(age >= .seconds(150) && age < .seconds(160))
        let silent = try await self.makeLoader().encoded(ImageRequest(url: self.url, cachePolicy: .reload), as: .png)
        #expect(silent.freshnessLifetime == .seconds(600))
    }

    // MARK: Encoded once

    @Test func `a thousand callers make one download, one decode and one encode`() async throws {
        let gate = Gate()
        self.origin.script("/a", .held(by: gate, body: try makePNG()))
        let encodes = DecodeCounter()
        let loader = self.makeLoader {
            $0.coders = CoderRegistry(coders: [
                EncodeCountingCoder(base: JPEGCoder(), encodes), CountingCoder(PNGCoder(), self.fixture.decodes),
            ])
        }
        let request = self.makeRequest()
        let tasks = (0..<1_000).map { _ in Task { try await loader.encoded(request, as: .jpeg()) } }
        await self.origin.waitForRequests(1, for: "/a")
        await until { await loader.encodedWaiterCount == 1_000 }
        await gate.open()
        var tags: Set<String> = []
        for task in tasks { tags.insert(try await task.value.etag) }
        #expect(tags.count == 1)
        #expect((self.requests, self.decodes, encodes.count) == (1, 1, 1))
    }

    @Test func `memory answers, then the disk, without decoding`() async throws {
        let first = try await self.makeLoader().encoded(self.makeRequest(), as: .webp())
        let decodes = self.decodes
        let loader = self.makeLoader()
        let second = try await loader.encoded(self.makeRequest(), as: .webp())
        let third = try await loader.encoded(self.makeRequest(), as: .webp())
        #expect((second.source, third.source) == (.disk, .memory))
        #expect(second.data == first.data && third.data == first.data)
        #expect(second.etag == first.etag && third.etag == first.etag)
        #expect((second.width, second.mediaType) == (8, "image/webp"))
        #expect((self.requests, self.decodes) == (1, decodes))
        let other = try await loader.encoded(self.makeRequest(), as: .webp(quality: 1))
        #expect(other.source == .disk)
        #expect(other.etag != first.etag)
        #expect(self.requests == 1)
    }

    @Test func `the tiers are those that the call names`() async throws {
        let loader = self.makeLoader()
        _ = try await loader.encoded(self.makeRequest(), as: .png, caching: .none)
        #expect(await loader.statistics().cache.memory.encodedCount == 0)
        _ = try await loader.encoded(self.makeRequest(), as: .png, caching: .memory)
        #expect(await loader.statistics().cache.memory.encodedCount == 1)
        let key = OutputEncoding.png.key(of: self.makeRequest().key)
        #expect(await !loader.cache.contains(key, in: .disk))
        _ = try await loader.encoded(self.makeRequest(), as: .png, caching: .disk)
        #expect(await loader.cache.contains(key, in: .disk))
        // The image itself is not in memory, because its request does not store it.
        #expect(await loader.statistics().cache.memory.count == 0)
    }

    @Test func `an encoded image lives as long as its request says`() async throws {
        var request = self.makeRequest()
        // The bytes on disk outlive the encoded image.
        _ = try await self.makeLoader().data(for: ImageRequest(url: self.url, options: .waitForStore))
        request.caching.lifetime = .seconds(60)
        let loader = self.makeLoader()
        _ = try await loader.encoded(request, as: .png)
        #expect(try await loader.encoded(request, as: .png).source == .memory)
        let decodes = self.decodes
        self.clock.advance(by: 61)
        #expect(try await loader.encoded(request, as: .png).source == .disk)
        #expect(self.decodes == decodes + 1)
        #expect(self.requests == 1)
    }

    @Test func `a shared cache does not store responses to credentials that a hook added`() async throws {
        self.origin.script("/a", .body(try makePNG(), headers: ["Cache-Control": "max-age=600"]))
        let loader = self.makeLoader {
            $0.cachePolicy = .honorFreshness
            $0.isSharedCache = true
            $0.hooks.modifyRequest = { download, _ in
                var download = download
                download.headers["Authorization"] = "Bearer token"
                return download
            }
        }
        _ = try await loader.encoded(self.makeRequest(), as: .png)
        #expect(await loader.statistics().cache.memory.encodedCount == 0)
        #expect(self.fixture.cacheFiles().isEmpty)
    }

    @Test func `a removal takes encoded images too`() async throws {
        let loader = self.makeLoader()
        let request = self.makeRequest()
        _ = try await loader.encoded(request, as: .png)
        #expect(try await loader.remove(request))
        #expect(await loader.statistics().cache.memory.encodedCount == 0)
        #expect(self.fixture.cacheFiles().isEmpty)
    }

    // MARK: Freshness

    @Test func `a new body takes the place of what was encoded of the old one`() async throws {
        let loader = self.makeLoader()
        let old = try await loader.encoded(self.makeRequest(), as: .png)
        self.origin.script("/a", .body(try makePNG(width: 20, height: 10, gray: 7)))
        _ = try await loader.data(for: ImageRequest(url: self.url, cachePolicy: .reload))
        let new = try await loader.encoded(self.makeRequest(), as: .png)
        #expect(new.etag != old.etag)
        #expect(try await loader.encoded(self.makeRequest(), as: .png).etag == new.etag)
        // Another loader finds the new image on disk.
        #expect(try await self.makeLoader().encoded(self.makeRequest(), as: .png).etag == new.etag)
    }

    @Test(arguments: [true, false])
    func `what the origin confirms is not made again`(isInMemory: Bool) async throws {
        let body = try makePNG()
        self.origin.script(
            "/a",
            .answer { request in
                request.headers["If-None-Match"] == "\"1\""
                    ? .body([], status: 304, headers: ["Cache-Control": "max-age=60", "ETag": "\"1\""])
                    : .body(body, headers: ["Cache-Control": "max-age=60", "ETag": "\"1\""])
            }
        )
        let change = { @Sendable (configuration: inout LoaderActor.Configuration) in
            configuration.cachePolicy = .honorFreshness
        }
        let first = self.makeLoader(change)
        let old = try await first.encoded(self.makeRequest(), as: .png)
        let decodes = self.decodes
        self.clock.advance(by: 100)
        let loader = isInMemory ? first : self.makeLoader(change)
        let confirmed = try await loader.encoded(self.makeRequest(), as: .png)
        #expect(confirmed.revalidation == .notModified)
        #expect(confirmed.etag == old.etag)
        #expect((self.requests, self.decodes) == (2, decodes))
        // It is fresh again.
        #expect(try await loader.encoded(self.makeRequest(), as: .png).source == .memory)
        #expect(self.requests == 2)
    }

    @Test func `what may be served stale is, and is made anew meanwhile`() async throws {
        let headers: HeaderFields = ["Cache-Control": "max-age=60, stale-while-revalidate=600"]
        self.origin.script("/a", .body(try makePNG(), headers: headers))
        let loader = self.makeLoader { $0.cachePolicy = .honorFreshness }
        let old = try await loader.encoded(self.makeRequest(), as: .png)
        self.clock.advance(by: 100)
        self.origin.script("/a", .body(try makePNG(gray: 9), headers: headers))
        let stale = try await loader.encoded(self.makeRequest(), as: .png)
        #expect(stale.etag == old.etag)
        #expect(stale.revalidation == .inBackground)
        await loader.waitForRevalidations()
        let new = try await loader.encoded(self.makeRequest(), as: .png)
        #expect(new.etag != old.etag)
        #expect(new.source == .memory)
        #expect(self.requests == 2)
    }

    @Test func `what must not be stored is not kept encoded either`() async throws {
        self.origin.script("/a", .body(try makePNG(), headers: ["Cache-Control": "no-store"]))
        let loader = self.makeLoader { $0.cachePolicy = .honorFreshness }
        _ = try await loader.encoded(self.makeRequest(), as: .png)
        #expect(await loader.statistics().cache.memory.encodedCount == 0)
        #expect(self.fixture.cacheFiles().isEmpty)
    }

    @Test func `a new body takes its place also where neither original nor image is kept`() async throws {
        let loader = self.makeLoader()
        var request = self.makeRequest()
        request.caching.originals = CacheUse(query: .all, store: .none)
        let old = try await loader.encoded(request, as: .png)
        self.origin.script("/a", .body(try makePNG(width: 20, height: 10, gray: 7)))
        var reload = request
        reload.cachePolicy = .reload
        let new = try await loader.encoded(reload, as: .png)
        #expect(new.etag != old.etag)
        #expect(try await loader.encoded(request, as: .png).etag == new.etag)
        #expect(try await loader.encoded(request, as: .png).source == .memory)
        #expect(self.requests == 2)
    }

    @Test(arguments: [true, false])
    func `what is encoded is of the image that the program gave last`(hasBytes: Bool) async throws {
        let loader = self.makeLoader()
        var request = self.makeRequest()
        request.caching.variants = .memory
        var tags: Set<String> = []
        if hasBytes { tags.insert(try await loader.encoded(request, as: .png).etag) }
        for gray in [3, 200, 3] as [UInt8] {
            try await loader.store(try makeGray(gray), for: request)
            let response = try await loader.encoded(request, as: .png)
            #expect(try await loader.image(from: response.data).pixels.sample(0, 0) == Int(gray))
            #expect(try await loader.encoded(request, as: .png).etag == response.etag)
            tags.insert(response.etag)
        }
        #expect(tags.count == (hasBytes ? 3 : 2))
        #expect(self.requests == (hasBytes ? 1 : 0))
        // The disk has no encoding of the program's image, so another loader uses the origin's image.
        let others = try await self.makeLoader().encoded(self.makeRequest(), as: .png)
        #expect((others.width, others.height) == (8, 4))
    }

    @Test(arguments: [true, false], [CacheUse.all, .none])
    func `a new body is asked for once, whatever is kept of it`(hasDisk: Bool, originals: CacheUse) async throws {
        func respond(_ tag: String, gray: UInt8) throws {
            let headers: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"\(tag)\""]
            self.origin.script("/a", .body(try makePNG(width: 20, height: 10, gray: gray), headers: headers))
        }
        let loader = self.makeLoader {
            if !hasDisk { $0.disk = nil }
            $0.cachePolicy = .honorFreshness
        }
        var request = self.makeRequest()
        request.caching.originals = originals
        try respond("1", gray: 1)
        let old = try await loader.encoded(request, as: .png)
        self.clock.advance(by: 20)
        try respond("2", gray: 2)
        let new = try await loader.encoded(request, as: .png)
        #expect(new.etag != old.etag)
        #expect(new.metrics.byteCount > 0)
        #expect((self.requests, self.decodes) == (2, 2))
        // The task of the load releases the bytes as it ends.
        await until { loader.downloads.bodyBudget.status.usedBytes == 0 }
    }

    @Test func `only those that waited for the store hear of its error`() async throws {
        let path = try self.fixture.directory.write([1], to: "file")
        let gate = Gate()
        self.origin.script("/a", .held(by: gate, body: try makePNG()))
        let loader = self.makeLoader { $0.disk?.directory = URL(filePath: path).appending(path: "cache") }
        var plain = self.makeRequest()
        plain.options = []
        let requests = [self.makeRequest(), plain]
        let tasks = requests.map { request in Task { try await loader.encoded(request, as: .png) } }
        await until { await loader.encodedWaiterCount == 2 }
        await gate.open()
        #expect(try await tasks[0].value.storeError?.code == .cacheNotWritable)
        #expect(try await tasks[1].value.storeError == nil)
    }

    @Test func `look-ups of encoded images are counted, and their memory has a limit of its own`() async throws {
        let loader = self.makeLoader { $0.disk = nil }
        for _ in 0..<3 { _ = try await loader.encoded(self.makeRequest(), as: .png) }
        let memory = await loader.statistics().cache.memory
        #expect((memory.encodedHits, memory.encodedMisses, memory.encodedCount) == (2, 1, 1))
        #expect(memory.encodedCost > 0)
        let without = self.makeLoader {
            $0.disk = nil
            $0.memory.encodedCostLimit = 0
        }
        for _ in 0..<2 {
            #expect(try await without.encoded(self.makeRequest(), as: .png).source == .network)
        }
        #expect(await without.statistics().cache.memory.encodedCount == 0)
        #expect(MemoryCache.Configuration().encodedCostLimit == MemoryCache.Configuration.defaultCostLimit / 4)
    }

    @Test func `a loader says which formats it writes`() {
        let loader = self.makeLoader { $0.coders = CoderRegistry() }
        let formats: [ImageFormat] = [.jpeg, .png, .webp, .gif, .avif, .heif, .pdf]
        #expect(formats.filter { loader.canEncode($0) } == [.jpeg, .png, .webp, .gif])
        #expect(!self.makeLoader { $0.coders = CoderRegistry(coders: [PNGCoder()]) }.canEncode(.jpeg))
    }

    @Test func `an encoded image that is not cached is an error where only the cache may answer`() async throws {
        await #expect {
            try await self.makeLoader().encoded(self.makeRequest(.cacheOnly), as: .png)
        } throws: { error in
            (error as? LoadError)?.code == .notInCache
        }
    }

    @Test func `a format that no coder writes is an error`() async throws {
        let loader = self.makeLoader { $0.coders = CoderRegistry(coders: [PNGCoder()]) }
        await #expect { try await loader.encoded(self.makeRequest(), as: .jpeg()) } throws: { error in
            (error as? LoadError)?.code == .unsupportedFormat
        }
    }
}

/// A coder that counts the encodes of another coder.
private struct EncodeCountingCoder: ImageCoder {
    let base: any ImageCoder
    let counter: DecodeCounter

    init(base: any ImageCoder, _ counter: DecodeCounter) {
        self.base = base
        self.counter = counter
    }

    var decodableFormats: Set<ImageFormat> { self.base.decodableFormats }
    var encodableFormats: Set<ImageFormat> { self.base.encodableFormats }

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try self.base.open(data, limits: limits)
    }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        self.counter.increment()
        return try self.base.encode(image, as: format, options: options)
    }
}
