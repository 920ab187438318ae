// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Encoded images in files of the disk tier, for `sendfile`.
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
        let found = try #require(try await loader.encodedFile(for: request, as: .webp()))
        #expect((found.mediaType, found.etag) == ("image/webp", response.etag))
        #expect((found.width, found.height) == (8, 4))
        #expect(found.metadata.bodyDigest == response.metadata.bodyDigest)
        var bytes = [UInt8](repeating: 0, count: found.file.byteCount)
        #expect(pread(found.file.descriptor, &bytes, bytes.count, off_t(found.file.offset)) == bytes.count)
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
}
