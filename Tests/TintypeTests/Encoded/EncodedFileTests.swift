// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Encoded images that the disk tier returns without a load: as files for `sendfile`, or at once.
@Suite(.waiting, .timeLimit(.minutes(5))) struct EncodedFileTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()
    let clock = TestClock()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
        self.origin.script("/a", .body(try makePNG(width: 20, height: 10), headers: ["Cache-Control": "max-age=60"]))
    }

    private func makeRequest(_ options: LoadOptions = .waitForStore) -> ImageRequest {
        ImageRequest(url: self.origin.url("/a"), thumbnail: .fit(width: 8, height: 8), options: options)
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness])
    func `the range of the file is the encoded image`(policy: CachePolicy) async throws {
        let loader = self.fixture.makeLoader(policy, by: self.clock)
        let request = self.makeRequest()
        #expect(try await loader.encodedFile(for: request, as: .webp()) == nil)
        let response = try await loader.encoded(request, as: .webp())
        let (file, found) = try #require(try await loader.encodedFile(for: request, as: .webp()))
        #expect((found.mediaType, found.etag) == ("image/webp", response.etag))
        #expect((found.width, found.height) == (8, 4))
        #expect(found.metadata.bodyDigest == response.metadata.bodyDigest)
        var bytes = [UInt8](repeating: 0, count: file.byteCount)
        #expect(pread(file.descriptor, &bytes, bytes.count, off_t(file.offset)) == bytes.count)
        #expect(Data(bytes) == response.data)
        #expect(try await loader.encodedFile(for: request, as: .png) == nil)
        #expect(try await loader.encodedFile(for: self.makeRequest(.firstFrameOnly), as: .webp()) == nil)
    }

    @Test func `a stale file and one of an older body are left to the load`() async throws {
        let loader = self.fixture.makeLoader(.honorFreshness, by: self.clock)
        let request = self.makeRequest()
        _ = try await loader.encoded(request, as: .png)
        self.clock.advance(by: 100)
        #expect(try await loader.encodedFile(for: request, as: .png) == nil)
        let trusting = self.fixture.makeLoader(.neverRevalidate, by: self.clock)
        _ = try await trusting.encoded(request, as: .png)
        #expect(try await trusting.encodedFile(for: request, as: .png) != nil)
        self.origin.script("/a", .body(try makePNG(width: 20, height: 10, gray: 7)))
        _ = try await trusting.data(for: ImageRequest(url: self.origin.url("/a"), cachePolicy: .reload))
        #expect(try await trusting.encodedFile(for: request, as: .png) == nil)
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness])
    func `images of a source are ready once one was read from disk`(policy: CachePolicy) async throws {
        let loader = self.fixture.makeLoader(policy, by: self.clock)
        let request = self.makeRequest()
        var other = self.makeRequest()
        other.thumbnail = .fit(width: 4, height: 4)
        let stored = try await loader.encoded(request, as: .png)
        let otherStored = try await loader.encoded(other, as: .png)
        #expect(loader.readyEncoded(request, as: .png) == nil)
        _ = try await loader.encodedFile(for: request, as: .png)
        let ready = try #require(loader.readyEncoded(request, as: .png))
        #expect((ready.data, ready.etag, ready.source) == (stored.data, stored.etag, .disk))
        #expect(loader.readyEncoded(other, as: .png)?.data == otherStored.data)
        #expect(loader.readyEncoded(request, as: .webp()) == nil)
    }

    @Test func `no image is ready that is stale, removed or of an older body`() async throws {
        let loader = self.fixture.makeLoader(.honorFreshness, by: self.clock)
        let request = self.makeRequest()
        func makeReady() async throws {
            _ = try await loader.encoded(request, as: .png)
            _ = try await loader.encodedFile(for: request, as: .png)
            #expect(loader.readyEncoded(request, as: .png) != nil)
        }
        try await makeReady()
        self.clock.advance(by: 100)
        #expect(loader.readyEncoded(request, as: .png) == nil)
        try await makeReady()
        _ = try await loader.remove(ImageRequest(url: self.origin.url("/a")))
        #expect(loader.readyEncoded(request, as: .png) == nil)
        try await makeReady()
        self.origin.script("/a", .body(try makePNG(width: 20, height: 10, gray: 7)))
        _ = try await loader.data(for: ImageRequest(url: self.origin.url("/a"), cachePolicy: .reload))
        #expect(loader.readyEncoded(request, as: .png) == nil)
    }
}
