// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeHTTP

@testable import TintypeRequests

@Suite struct LoadHooksTests {
    @Test func `a function of a request replaces only the loader's function of the same name`() async throws {
        let url = try #require(URL(string: "https://example.org/a"))
        let loader = LoadHooks(
            modifyRequest: { download, request in
                var download = download
                download.headers["X-Path"] = request.url.path()
                return download
            },
            decrypt: { _, _, _ in Data([1]) }
        )
        var request = ImageRequest(url: url)
        request.source.hooks = Named("own", LoadHooks(decrypt: { _, _, _ in Data([2]) }))
        let hooks = try #require(loader.downloadHooks(of: request))
        let download = try await hooks.prepare(DownloadRequest(url: url))
        #expect(download.headers["X-Path"] == "/a")
        let response = try await hooks.process(DownloadResponse(body: Data([0]), url: url))
        #expect(response.body == Data([2]))
        let none = LoadHooks().downloadHooks(of: ImageRequest(url: url))
        #expect(none == nil)
    }
}
