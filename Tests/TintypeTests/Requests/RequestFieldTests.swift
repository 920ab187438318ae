// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeFlights
import TintypeTestSupport

@testable import Tintype

/// The keys and flights that each property of a request separates.
@Suite struct RequestFieldTests {
    /// The key or flight that two requests do not share if they differ in a property.
    enum Separation: Sendable {
        case sourceKey, imageKey, flight, imageFlight, nothing
    }

    /// A property, its separation, and a change of its value.
    struct Field: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let separates: Separation
        let change: @Sendable (inout ImageRequest) -> Void

        init(_ name: String, _ separates: Separation, _ change: @escaping @Sendable (inout ImageRequest) -> Void) {
            self.testDescription = name
            self.separates = separates
            self.change = change
        }
    }

    static let all = [
        Field("source.url", .sourceKey) { $0.url.append(path: "b") },
        Field("source.headers", .sourceKey) { $0.headers["X"] = "1" },
        Field("source.cacheKey", .sourceKey) { $0.cacheKey = "a" },
        Field("source.fetcher", .sourceKey) { $0.source.fetcher = Named("a", ScriptedOrigin()) },
        Field("source.credentials", .sourceKey) { $0.source.credentials = .basic(user: "a", password: "b") },
        Field("source.cookies", .sourceKey) { $0.source.cookies = .jar(CookieJar()) },
        Field("source.hooks", .sourceKey) { $0.source.hooks = Named("a", LoadHooks()) },
        Field("options", .sourceKey) { $0.options = .allowInvalidCertificates },
        Field("options", .imageKey) { $0.options = .allowTruncated },
        Field("options", .nothing) {
            $0.options = [.waitForStore, .previews, .keepData, .retryFailed, .finishDownload]
        },
        Field("rendering.thumbnail", .imageKey) { $0.thumbnail = .fit(width: 1, height: 1) },
        Field("rendering.transforms", .imageKey) { $0.transforms = [.resize(.fit(width: 1, height: 1))] },
        Field("rendering.scaleDownLimit", .imageKey) { $0.rendering.scaleDownLimit = 1_000 },
        Field("rendering.coder", .imageKey) { $0.rendering.coder = Named("a", PNGCoder()) },
        Field("rendering.scale", .imageKey) { $0.rendering.scale = 2 },
        Field("caching.originals", .flight) { $0.caching.originals = .none },
        Field("caching.originals", .nothing) { $0.caching.originals.store = .none },
        Field("caching.variants", .nothing) { $0.caching.variants = CacheUse(query: .all, store: .none) },
        Field("caching.policy", .flight) { $0.cachePolicy = .reload },
        Field("transport.networkPolicy", .flight) { $0.transport.networkPolicy = .publicInternet },
        Field("transport.bodyLimit", .flight) { $0.transport.bodyLimit = 1 },
        Field("transport.timeouts", .flight) { $0.transport.timeouts.total = .seconds(1) },
        Field("transport.timeouts", .flight) { $0.transport.timeouts.idle = .seconds(1) },
        Field("transport.retryPolicy", .flight) { $0.transport.retryPolicy = RetryPolicy() },
        Field("transport.decodingLimits", .flight) {
            $0.transport.decodingLimits = DecodingLimits(maximumEncodedBytes: 1)
        },
        Field("transport.decodingLimits", .flight) { $0.transport.decodingLimits = DecodingLimits(maximumPixels: 1) },
        Field("caching.lifetime", .flight) { $0.caching.lifetime = .seconds(1) },
        Field("caching.memoryLifetime", .flight) { $0.caching.memoryLifetime = .seconds(1) },
        Field("caching.extra", .flight) { $0.caching.extra = ["a": "b"] },
        Field("caching.originalSerializer", .flight) { request in
            request.caching.originalSerializer = Named("a") { body, _ in body }
        },
        Field("caching.variantEncoder", .imageFlight) { request in
            request.caching.variantEncoder = Named("a") { _, _ in nil }
        },
        Field("alternatives", .nothing) { $0.alternatives = [ImageRequest(url: URL(filePath: "/a"))] },
        Field("fallback", .nothing) { request in
            guard let layout = try? PixelLayout(format: .gray8, width: 1, height: 1),
                let pixels = try? PixelBuffer(layout, filling: { _ in })
            else { return }
            request.fallback = Image(pixels: pixels)
        },
        Field("transport.priority", .nothing) { $0.priority = .high },
    ]

    let request: ImageRequest
    let rules = FreshnessRules(LoaderActor.Configuration())

    init() throws {
        self.request = ImageRequest(url: try #require(URL(string: "https://example.com/a.png")))
    }

    private func product(_ kind: FlightTable.Product.Kind, _ request: ImageRequest) -> FlightTable.Product {
        FlightTable.Product(kind, request, rules: self.rules, mayServeStale: true)
    }

    @Test(arguments: Self.all)
    func `the part of a property decides which keys and flights it separates`(field: Field) {
        var changed = self.request
        field.change(&changed)
        #expect(changed != self.request)
        #expect((changed.sourceKey != self.request.sourceKey) == (field.separates == .sourceKey))
        #expect((changed.resourceKey != self.request.resourceKey) == (field.separates == .sourceKey))
        #expect((changed.key != self.request.key) == [.sourceKey, .imageKey].contains(field.separates))
        let sharesBytes = self.product(.bytes, changed) == self.product(.bytes, self.request)
        #expect(sharesBytes == [.imageKey, .imageFlight, .nothing].contains(field.separates))
        let sharesImage = self.product(.image, changed) == self.product(.image, self.request)
        #expect(sharesImage == (field.separates == .nothing))
    }

    @Test func `no property is forgotten`() {
        let parts: [(name: String, part: Any)] = [
            ("source", self.request.source), ("rendering", self.request.rendering),
            ("caching", self.request.caching), ("transport", self.request.transport),
        ]
        let names = parts.flatMap { name, part in
            Mirror(reflecting: part).children.compactMap(\.label).map { "\(name).\($0 == "fields" ? "headers" : $0)" }
        }
        #expect(Set(names + ["options", "alternatives", "fallback"]) == Set(Self.all.map(\.testDescription)))
    }

    @Test func `the properties that most programs set are the properties of the parts`() {
        var request = self.request
        request.url.append(path: "b")
        request.headers = ["X": "1"]
        request.cacheKey = "a"
        request.thumbnail = .fit(width: 1, height: 1)
        request.transforms = [.resize(.fit(width: 1, height: 1))]
        request.cachePolicy = .reload
        request.priority = .high
        request.options = .keepData
        let made = ImageRequest(
            source: ImageRequest.Source(url: request.url, headers: ["X": "1"], cacheKey: "a"),
            rendering: ImageRequest.Rendering(thumbnail: request.thumbnail, transforms: request.transforms),
            caching: ImageRequest.Caching(policy: .reload),
            transport: ImageRequest.Transport(priority: .high),
            options: .keepData
        )
        #expect(request == made)
        #expect((made.url, made.headers, made.cacheKey) == (request.url, ["X": "1"], "a"))
        #expect((made.thumbnail, made.transforms) == (request.thumbnail, request.transforms))
        #expect((made.cachePolicy, made.priority) == (.reload, .high))
    }

    @Test func `threads that derive the keys of one request at once get the same`() async throws {
        for index in 0..<200 {
            let url = self.request.url.appending(path: "\(index)")
            let request = ImageRequest(url: url, headers: ["X": "1"], thumbnail: .fit(width: 1, height: 1))
            let keys = await withTaskGroup(of: [CacheKey].self) { group in
                for _ in 0..<8 { group.addTask { [request.key, request.sourceKey, request.resourceKey] } }
                return await group.reduce(into: Set<[CacheKey]>()) { $0.insert($1) }
            }
            #expect(keys.count == 1)
            #expect(keys.first?.first == request.key)
        }
    }

    @Test func `a copy that is changed leaves the others as they are`() {
        var first = self.request
        first.caching.extra = ["a": "b"]
        var second = first
        second.caching.extra = [:]
        second.rendering.scale = 3
        second.headers = ["X": "1"]
        #expect(first.caching.extra == ["a": "b"])
        #expect(first.rendering.scale == nil)
        #expect(first.key == self.request.key)
        second.rendering.scale = nil
        second.headers = [:]
        #expect(second == self.request)
        #expect(second.hashValue == self.request.hashValue)
        #expect(second.key == self.request.key)
    }

    @Test func `which tiers are asked for a variant tells its flights apart`() {
        var request = self.request
        request.thumbnail = .fit(width: 1, height: 1)
        var other = request
        other.caching.variants = CacheUse(query: .none, store: .memory)
        #expect(self.product(.image, request) != self.product(.image, other))
        #expect(self.product(.bytes, request) == self.product(.bytes, other))
    }

    @Test func `secrets are in keys only as digests`() {
        var request = self.request
        request.source.credentials = .basic(user: "somebody", password: "s3cret")
        request.source.cookies = .jar(CookieJar(name: "session"))
        for secret in ["somebody", "s3cret", "session"] { #expect(!request.key.text.contains(secret)) }
        var others = [request, request, request, request]
        others[1].source.credentials = .basic(user: "somebod", password: "ys3cret")
        others[2].source.credentials = .digest(user: "somebody", password: "s3cret")
        others[3].source.cookies = .disabled
        #expect(Set(others.map(\.sourceKey)).count == 4)
        // A jar of the same name stands for the same user.
        others[1] = request
        others[1].source.cookies = .jar(CookieJar(name: "session"))
        #expect(others[1].key == request.key)
    }

    @Test func `a key of the user's own stands for the URL and for nothing else`() throws {
        let urls = try ["https://a.example/1?signature=1", "https://a.example/1?signature=2"].map {
            try #require(URL(string: $0))
        }
        let requests = urls.map { ImageRequest(url: $0, cacheKey: "image") }
        #expect(requests[0].key == requests[1].key)
        #expect(requests[0].resourceKey == requests[1].resourceKey)
        #expect(ImageRequest(url: urls[0]).key != requests[0].key)
        #expect(ImageRequest(url: urls[0], cacheKey: "other").key != requests[0].key)
        // A user's key cannot pass for a URL or forge another line.
        let plain = ImageRequest(url: urls[0])
        #expect(ImageRequest(url: urls[1], cacheKey: plain.key.text).key != plain.key)
        var signed = requests[0]
        signed.options = .allowInvalidCertificates
        let forged = ImageRequest(url: urls[0], cacheKey: "image)\n|unverified")
        #expect(!forged.key.text.contains("\n"))
        #expect(forged.key != signed.key)
        var secret = requests[0]
        secret.source.credentials = .bearer("a")
        #expect(secret.key != requests[0].key)
    }

    // MARK: Scale

    @Test(arguments: [
        ("https://example.com/a@2x.png", 2.0), ("https://example.com/a@3x.gif?b=c", 3), ("file:///a/b%402x.png", 2),
        ("https://example.com/a.png", 1), ("https://example.com/a@2x", 1), ("https://example.com/a@2x/b.png", 1),
        ("https://user@2x.example.com/", 1), ("https://user@2x.example.com", 1), ("https://example.com/?a@2x.png", 1),
        ("data:,a", 1), ("https://example.com/a@2x.tar.gz", 2), ("icons:a@3x.png", 3),
    ])
    func `the scale is read from the name of the URL`(text: String, scale: Double) throws {
        var request = ImageRequest(url: try #require(URL(string: text)))
        #expect(request.imageScale == scale)
        #expect(request.rendering.scale == nil)
        let key = request.key
        // An explicit scale of the same value changes nothing.
        request.rendering.scale = scale
        #expect(request.key == key)
        request.rendering.scale = 1.5
        #expect(request.imageScale == 1.5)
        #expect(request.key != key)
        #expect(request.sourceKey == key)
        // The pixels are the same, so there is no variant to encode.
        #expect(!request.isVariant)
    }

    // MARK: Cost

    @Test(.enabled(if: AllocatedMemory.isMeasured)) func `setting up a request takes two allocations at most`() throws {
        let url = self.request.url
        func count(_ make: () -> ImageRequest) -> Int {
            // The first call also allocates the runtime's shared data, so do not count it.
            _ = make()
            return AllocatedMemory.count { _ = make() }
        }
        #expect(count { ImageRequest(url: url) } <= 2)
        #expect(count { ImageRequest(url: url, headers: ["Accept": "image/webp", "X-User": "7"]) } <= 2)
        // Setting fields one by one changes the same object.
        let all = count {
            var request = ImageRequest(url: url, headers: ["Accept": "image/webp"], cacheKey: "a", priority: .low)
            request.thumbnail = .fit(width: 400, height: 300)
            request.options = .waitForStore
            request.caching.originals = .disk
            request.cachePolicy = .honorFreshness
            request.priority = .high
            return request
        }
        #expect(all <= 2)
        // A changed copy is another request, which reuses the derived keys.
        let request = self.request
        let key = request.key
        let copies = count {
            var copy = request
            copy.priority = .high
            return copy
        }
        #expect(copies <= 1)
        #expect(request.key == key)
    }
}
