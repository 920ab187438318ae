// SPDX-License-Identifier: Apache-2.0

import Testing
import Tintype
import TintypeTestTraits

/// The response metadata that the memory tier stores with an image.
@Suite(.waiting, .timeLimit(.minutes(5))) struct MemoryMetadataTests {
    private let fixture: LoaderFixture
    private let origin = ScriptedOrigin()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
    }

    @Test func `an image in memory keeps only the fields that decide about its reuse`() async throws {
        let padding = String(repeating: "x", count: 60_000)
        var headers: HeaderFields = [
            "Content-Type": "image/png", "Cache-Control": "max-age=60", "ETag": "\"a\"",
            "Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT", "Vary": "Accept", "Connection": "close, X-Hop",
            "X-Hop": "1",
        ]
        for index in 0..<4 { headers["X-Padding-\(index)"] = padding }
        let count = 20
        for index in 0..<count { self.origin.script("/\(index)", .body(try makePNG(), headers: headers)) }
        let loader = self.fixture.makeLoader()
        for index in 0..<count {
            let response = try await loader.response(for: ImageRequest(url: self.origin.url("/\(index)")))
            // The caller sees every header field of the origin.
            #expect(response.metadata.response?.values(for: "X-Padding-3") == [padding])
        }
        let statistics = loader.cache.memory.statistics
        #expect(statistics.count == count)
        #expect(statistics.cost < count * 4_096)
        let held = try await loader.response(for: ImageRequest(url: self.origin.url("/0")))
        #expect(held.source == .memory)
        #expect(held.metadata.etag == "\"a\"")
        let names = held.metadata.response?.fields.map(\.name)
        #expect(names == ["Content-Type", "Cache-Control", "ETag", "Last-Modified", "Vary"])
        // The disk has the whole response, except the fields about the connection (RFC 9111, 3.1).
        await loader.cache.waitForPendingStores()
        let stored = try await self.fixture.makeLoader().dataResponse(for: ImageRequest(url: self.origin.url("/0")))
        #expect(stored.source == .disk)
        #expect(stored.headers["X-Padding-3"] == padding)
        #expect(stored.headers["X-Hop"] == nil)
    }
}
