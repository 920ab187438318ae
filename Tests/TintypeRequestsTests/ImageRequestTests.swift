// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCaching
import TintypeCoding
import TintypeDownloading
import TintypeHTTP
import TintypeTransforms

@testable import TintypeRequests

@Suite struct ImageRequestTests {
    let url: URL

    init() throws {
        self.url = try #require(URL(string: "https://example.com/a.jpg?b=c#d"))
    }

    @Test func `every parameter of the image is in its key`() throws {
        let other = try #require(URL(string: "https://example.com/a.jpg?b=d"))
        let requests = [
            ImageRequest(url: self.url),
            ImageRequest(url: other),
            ImageRequest(url: self.url, headers: ["Accept": "image/webp"]),
            ImageRequest(url: self.url, headers: ["Accept": "image/webp", "X": "1"]),
            ImageRequest(url: self.url, headers: ["Accept": "image/webp\nx: 1"]),
            ImageRequest(url: self.url, thumbnail: .fit(width: 10, height: 20)),
            ImageRequest(url: self.url, thumbnail: .fit(width: 20, height: 10)),
            ImageRequest(url: self.url, thumbnail: .fill(width: 10, height: 20)),
            ImageRequest(url: self.url, thumbnail: .fit(width: 10, height: 20, upscales: true)),
            ImageRequest(url: self.url, thumbnail: Resize(width: 10, height: 20, filter: .bicubic)),
            ImageRequest(url: self.url, options: [.allowTruncated]),
            ImageRequest(url: self.url, options: [.allowInvalidCertificates]),
            ImageRequest(url: self.url, options: [.allowInvalidCertificates, .allowTruncated]),
        ]
        #expect(Set(requests.map(\.key)).count == requests.count)
        #expect(Set(requests.map(\.sourceKey)).count == 6)
    }

    @Test func `the key in an encoding follows the encoding and the request`() {
        var request = ImageRequest(url: self.url)
        let encodings: [OutputEncoding] = [.png, .png, .webp(), .png]
        #expect(encodings.map { request.key(as: $0) } == encodings.map { $0.key(of: request.key) })
        #expect(request.key(as: .png) != request.key(as: .webp()))
        let original = request
        request.transforms = [.resize(.width(100))]
        #expect(request.key(as: .png) == OutputEncoding.png.key(of: request.key))
        #expect(request.key(as: .png) != original.key(as: .png))
    }

    @Test func `a request is described without credentials, and not longer than it takes`() throws {
        let secret = try #require(URL(string: "https://user:password@example.com/a.jpg"))
        #expect("\(ImageRequest(url: secret))" == "https://example.com/a.jpg")
        let small = ImageRequest(url: secret, thumbnail: .fill(width: 40, height: 30))
        #expect("\(small)" == "https://example.com/a.jpg, fill 40x30")
        let data = try #require(URL(string: "data:image/png;base64,\(String(repeating: "A", count: 5_000))"))
        #expect("\(ImageRequest(url: data))".count < 250)
    }

    /// Keys name entries on disk.
    ///
    /// If they change, all users lose their caches.
    @Test func `keys are the same in every version`() throws {
        let url = try #require(URL(string: "https://name:secret@example.com/a@2x.jpg?b=c#d"))
        let full = ImageRequest(
            source: ImageRequest.Source(
                url: url,
                headers: ["Accept": "image/webp", "X-User": "7"],
                credentials: .bearer("token")
            ),
            rendering: ImageRequest.Rendering(
                thumbnail: .fill(width: 40, height: 30),
                transforms: [.resize(.fit(width: 1, height: 1))],
                scale: 3,
                coder: Named("a", PNGCoder())
            ),
            options: [.allowTruncated, .keepColorProfile, .allowInvalidCertificates, .waitForStore]
        )
        #expect(full.key.digest == "f14ef56a9b437fc99918665e6ef3c9bc6a9518478886b23ebc083467396a3b48")
        #expect(full.sourceKey.digest == "8e9fd602049fa4468917d8e9f80b9853c700ff0c949da92572d6dfc36e7cf782")
        let named = try #require(URL(string: "https://example.com/a@2x.jpg"))
        var request = ImageRequest(url: named, cacheKey: "photo-17")
        #expect(request.key.text == "|key(photo-17)\n>|scale(2.0)")
        #expect(request.sourceKey.text == "|key(photo-17)")
        request.source.cookies = .disabled
        request.source.fetcher = Named("a", DownloadActor())
        request.source.hooks = Named("b", LoadHooks())
        request.rendering.scaleDownLimit = 1_000
        #expect(request.key.digest == "686e69daa2f929d400b09bbbcc52b15831816ae60e68bd4c679b34f1746aec1d")
        #expect(request.sourceKey.digest == "98a204ed40357410230914bcb6557f5ebc87a20bb5407eef416b014e1ff6bedd")
    }

    @Test(arguments: [LoadOptions.waitForStore, .keepData, .previews])
    func `options of the load are not in the key`(options: LoadOptions) {
        #expect(ImageRequest(url: self.url, options: options).key == ImageRequest(url: self.url).key)
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness, .revalidate, .reload, .cacheOnly])
    func `the cache policy is not in the key`(policy: CachePolicy) {
        #expect(ImageRequest(url: self.url, cachePolicy: policy).key == ImageRequest(url: self.url).key)
    }

    @Test func `a change changes the keys and not the original`() {
        let original = ImageRequest(url: self.url)
        var copy = original
        copy.thumbnail = .fit(width: 1, height: 1)
        copy.cachePolicy = .reload
        copy.headers = ["A": "b"]
        #expect(original.thumbnail == nil)
        #expect(copy.key != original.key)
        #expect(copy != original)
        copy.thumbnail = nil
        copy.cachePolicy = nil
        copy.headers = [:]
        #expect(copy == original)
        #expect(copy.key == original.key)
        #expect(Set([copy, original]).count == 1)
    }

    @Test func `keys are derived anew only when a part of them changes`() {
        // A key is a reference. The same address means that the key was not derived again.
        func addresses(_ request: ImageRequest) -> [UInt] {
            [request.key, request.sourceKey, request.resourceKey].map { unsafeBitCast($0, to: UInt.self) }
        }
        let original = ImageRequest(url: self.url, headers: ["X": "1"], thumbnail: .fit(width: 1, height: 1))
        // The first use derives the keys.
        _ = addresses(original)
        let unrelated: [(inout ImageRequest) -> Void] = [
            { $0.priority = .high }, { $0.cachePolicy = .reload }, { $0.caching.originals = .none },
            { $0.transport.bodyLimit = 1 },
            { $0.caching.variants = .all }, { $0.options = [.waitForStore, .keepData, .previews] },
        ]
        for change in unrelated {
            var request = original
            change(&request)
            #expect(request != original)
            #expect(addresses(request) == addresses(original))
        }
        let related: [(inout ImageRequest) -> Void] = [
            { $0.headers = [:] }, { $0.thumbnail = nil }, { $0.options = .allowTruncated },
            { $0.options = .keepColorProfile }, { $0.options = .allowInvalidCertificates },
            { $0.rendering.scaleDownLimit = 1_000 }, { $0.url.append(path: "b") },
            { $0.source.credentials = .bearer("a") },
        ]
        for change in related {
            var request = original
            change(&request)
            #expect(addresses(request) != addresses(original))
        }
    }

    @Test func `a change decides anew whether memory answers unchecked`() {
        var request = ImageRequest(url: self.url)
        #expect(request.uncheckedMemory == .ofTrustingLoaders)
        request.cachePolicy = .cacheOnly
        #expect(request.uncheckedMemory == [.ofTrustingLoaders, .ofAllLoaders])
        request.caching.originals = .disk
        #expect(request.uncheckedMemory == [])
    }

    @Test func `secrets are in keys only as digests`() throws {
        let url = try #require(URL(string: "https://name:secret@example.com/a.jpg"))
        let request = ImageRequest(url: url, headers: ["Authorization": "Bearer token"])
        for secret in ["name", "secret", "Bearer", "token"] { #expect(!request.key.text.contains(secret)) }
        #expect(request.key.text.hasPrefix("https://example.com/a.jpg"))
        let other = try #require(URL(string: "https://name:other@example.com/a.jpg"))
        #expect(ImageRequest(url: url).key != ImageRequest(url: other).key)
    }
}
