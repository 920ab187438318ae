import FoundationEssentials
import Testing
import TintypeTestSupport

@testable import Tintype

/// What each field of a request is a part of.
@Suite struct RequestFieldTests {
    enum Part: Sendable {
        case sourceKey, imageKey, flight, imageFlight, nothing
    }

    /// A field, what it is a part of, and a change of it.
    struct Field: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let part: Part
        let change: @Sendable (inout ImageRequest) -> Void

        init(_ name: String, _ part: Part, _ change: @escaping @Sendable (inout ImageRequest) -> Void) {
            self.testDescription = name
            self.part = part
            self.change = change
        }
    }

    static let all = [
        Field("url", .sourceKey) { $0.url.append(path: "b") },
        Field("headers", .sourceKey) { $0.headers["X"] = "1" },
        Field("cacheKey", .sourceKey) { $0.cacheKey = "a" },
        Field("fetcher", .sourceKey) { $0.fetcher = Named("a", ScriptedOrigin()) },
        Field("credentials", .sourceKey) { $0.credentials = .basic(user: "a", password: "b") },
        Field("cookies", .sourceKey) { $0.cookies = .jar(CookieJar()) },
        Field("requestModifier", .sourceKey) { request in
            request.requestModifier = Named("a") { download, _ in download }
        },
        Field("responseModifier", .sourceKey) { request in
            request.responseModifier = Named("a") { response, _ in response }
        },
        Field("decryptor", .sourceKey) { request in
            request.decryptor = Named("a") { body, _, _ in body }
        },
        Field("options", .sourceKey) { $0.options = .allowInvalidCertificates },
        Field("options", .imageKey) { $0.options = .allowTruncated },
        Field("options", .nothing) {
            $0.options = [.waitForStore, .previews, .keepData, .retryFailed, .finishDownload]
        },
        Field("thumbnail", .imageKey) { $0.thumbnail = .fit(width: 1, height: 1) },
        Field("transforms", .imageKey) { $0.transforms = [.resize(.fit(width: 1, height: 1))] },
        Field("scaleDownLimit", .imageKey) { $0.scaleDownLimit = 1_000 },
        Field("coder", .imageKey) { $0.coder = Named("a", PNGCoder()) },
        Field("scale", .imageKey) { $0.scale = 2 },
        Field("originalCaching", .flight) { $0.originalCaching = .none },
        Field("originalCaching", .nothing) { $0.originalCaching.store = .none },
        Field("variantCaching", .nothing) { $0.variantCaching.store = .none },
        Field("cachePolicy", .flight) { $0.cachePolicy = .reload },
        Field("networkPolicy", .flight) { $0.networkPolicy = .publicInternet },
        Field("bodyLimit", .flight) { $0.bodyLimit = 1 },
        Field("timeouts", .flight) { $0.timeouts.total = .seconds(1) },
        Field("timeouts", .flight) { $0.timeouts.idle = .seconds(1) },
        Field("retryPolicy", .flight) { $0.retryPolicy = RetryPolicy() },
        Field("decodingLimits", .flight) { $0.decodingLimits = DecodingLimits(maximumEncodedBytes: 1) },
        Field("decodingLimits", .flight) { $0.decodingLimits = DecodingLimits(maximumPixels: 1) },
        Field("lifetime", .flight) { $0.lifetime = .seconds(1) },
        Field("extra", .flight) { $0.extra = ["a": "b"] },
        Field("originalSerializer", .flight) { request in
            request.originalSerializer = Named("a") { body, _ in body }
        },
        Field("variantEncoder", .imageFlight) { request in
            request.variantEncoder = Named("a") { _, _ in nil }
        },
        Field("alternatives", .nothing) { $0.alternatives = [ImageRequest(url: URL(filePath: "/a"))] },
        Field("fallback", .nothing) { request in
            guard let layout = try? PixelLayout(format: .gray8, width: 1, height: 1),
                let pixels = try? PixelBuffer(layout, filling: { _ in })
            else { return }
            request.fallback = Image(pixels: pixels)
        },
        Field("priority", .nothing) { $0.priority = .high },
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
    func `each field is a part of what its documentation says`(field: Field) {
        var changed = self.request
        field.change(&changed)
        #expect(changed != self.request)
        #expect((changed.sourceKey != self.request.sourceKey) == (field.part == .sourceKey))
        #expect((changed.resourceKey != self.request.resourceKey) == (field.part == .sourceKey))
        #expect((changed.key != self.request.key) == [.sourceKey, .imageKey].contains(field.part))
        let sharesBytes = self.product(.bytes, changed) == self.product(.bytes, self.request)
        #expect(sharesBytes == [.imageKey, .imageFlight, .nothing].contains(field.part))
        let sharesImage = self.product(.image, changed) == self.product(.image, self.request)
        #expect(sharesImage == (field.part == .nothing))
    }

    @Test func `no field is forgotten`() {
        let fields = Mirror(reflecting: self.request.fields).children.compactMap(\.label).filter {
            $0 != "boxedDetails"
        }
        let details = Mirror(reflecting: ImageRequest.Details()).children.compactMap(\.label)
        #expect(Set(fields + details) == Set(Self.all.map(\.testDescription)))
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
        first.extra = ["a": "b"]
        var second = first
        second.extra = [:]
        second.scale = 3
        second.headers = ["X": "1"]
        #expect(first.extra == ["a": "b"])
        #expect(first.scale == nil)
        #expect(first.key == self.request.key)
        second.scale = nil
        second.headers = [:]
        #expect(second == self.request)
        #expect(second.hashValue == self.request.hashValue)
        #expect(second.key == self.request.key)
    }

    @Test func `which tiers are asked for a variant tells its flights apart`() {
        var request = self.request
        request.thumbnail = .fit(width: 1, height: 1)
        var other = request
        other.variantCaching.query = .none
        #expect(self.product(.image, request) != self.product(.image, other))
        #expect(self.product(.bytes, request) == self.product(.bytes, other))
    }

    @Test func `secrets are in keys only as digests`() {
        var request = self.request
        request.credentials = .basic(user: "somebody", password: "s3cret")
        request.cookies = .jar(CookieJar(name: "session"))
        for secret in ["somebody", "s3cret", "session"] { #expect(!request.key.text.contains(secret)) }
        var others = [request, request, request, request]
        others[1].credentials = .basic(user: "somebod", password: "ys3cret")
        others[2].credentials = .digest(user: "somebody", password: "s3cret")
        others[3].cookies = .disabled
        #expect(Set(others.map(\.sourceKey)).count == 4)
        // A jar of that name stands for the same user.
        others[1] = request
        others[1].cookies = .jar(CookieJar(name: "session"))
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
        // It can't pass for a URL, or forge another line.
        let plain = ImageRequest(url: urls[0])
        #expect(ImageRequest(url: urls[1], cacheKey: plain.key.text).key != plain.key)
        var signed = requests[0]
        signed.options = .allowInvalidCertificates
        let forged = ImageRequest(url: urls[0], cacheKey: "image)\n|unverified")
        #expect(!forged.key.text.contains("\n"))
        #expect(forged.key != signed.key)
        var secret = requests[0]
        secret.credentials = .bearer("a")
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
        #expect(request.scale == nil)
        let key = request.key
        // Said once more it changes nothing.
        request.scale = scale
        #expect(request.key == key)
        request.scale = 1.5
        #expect(request.imageScale == 1.5)
        #expect(request.key != key)
        #expect(request.sourceKey == key)
        // The same pixels: no variant that would have to be encoded.
        #expect(!request.isVariant)
    }

    // MARK: Cost

    @Test(.enabled(if: AllocatedMemory.isMeasured)) func `setting up a request takes two allocations at most`() throws {
        let url = self.request.url
        func count(_ make: () -> ImageRequest) -> Int {
            // What the runtime keeps for all of them is made by the first.
            _ = make()
            return AllocatedMemory.count { _ = make() }
        }
        #expect(count { ImageRequest(url: url) } <= 2)
        #expect(count { ImageRequest(url: url, headers: ["Accept": "image/webp", "X-User": "7"]) } <= 2)
        // Fields that are set one by one change the same object.
        let all = count {
            var request = ImageRequest(url: url, headers: ["Accept": "image/webp"], cacheKey: "a", priority: .low)
            request.thumbnail = .fit(width: 400, height: 300)
            request.options = .waitForStore
            request.originalCaching = .disk
            request.cachePolicy = .honorFreshness
            request.priority = .high
            return request
        }
        #expect(all <= 2)
        // A copy that is changed is another request, whose keys are there.
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
