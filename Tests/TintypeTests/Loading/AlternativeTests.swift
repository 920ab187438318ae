// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Alternative sources, tried in order, and the image that stands in if all fail.
@Suite(.waiting, .timeLimit(.minutes(5))) struct AlternativeTests {
    let fixture: LoaderFixture
    let origin: ScriptedOrigin

    init() throws {
        self.origin = ScriptedOrigin([
            "/none": .body([1], status: 404), "/html": .body(Array("<html>".utf8)), "/b": .body(try makePNG(width: 20)),
            "/c": .body(try makePNG(width: 30)),
        ])
        self.fixture = try LoaderFixture(origin: self.origin)
    }

    private func request(_ paths: String...) -> ImageRequest {
        let requests = paths.map { ImageRequest(url: self.origin.url($0)) }
        var request = requests[0]
        request.alternatives = Array(requests.dropFirst())
        return request
    }

    @Test func `the first source that works gives the image, and says which it was`() async throws {
        let loader = self.fixture.makeLoader()
        let response = try await loader.response(for: self.request("/none", "/html", "/b", "/c"))
        #expect(response.image.width == 20)
        #expect(response.alternative == 1)
        #expect(self.origin.requestedPaths == ["/none", "/html", "/b"])
        #expect(try await loader.response(for: self.request("/b", "/c")).alternative == nil)
    }

    @Test func `where all fail, the error lists every attempt in order`() async throws {
        let loader = self.fixture.makeLoader()
        do {
            _ = try await loader.image(for: self.request("/none", "/html", "/none2"))
            Issue.record("there is no image")
        } catch let error as LoadError {
            #expect(error.attempts.map(\.error.code) == [.badStatus, .notAnImage, .badStatus])
            #expect(error.attempts.map(\.request.url.path) == ["/none", "/html", "/none2"])
            #expect(error.code == .badStatus)
        }
    }

    @Test func `the error of several sources names each URL once, and what they have in common`() async throws {
        let loader = self.fixture.makeLoader()
        for round in 0..<2 {
            let error = await #expect(throws: LoadError.self) {
                try await loader.image(for: self.request("/none", "/html", "/none2"))
            }
            let message = try #require(error?.message)
            #expect(message.hasPrefix("All 3 sources failed. "))
            for path in ["/none ", "/html:", "/none2 "] {
                #expect(message.ranges(of: "https://origin.example\(path)").count == 1, "\(message)")
            }
            #expect(message.ranges(of: "The failure is remembered").count == round, "\(message)")
        }
    }

    @Test func `an error without alternatives lists no attempts`() async throws {
        let loader = self.fixture.makeLoader()
        await #expect { try await loader.image(for: self.request("/none")) } throws: { error in
            (error as? LoadError)?.attempts.isEmpty ?? false
        }
    }

    @Test(arguments: [0, 1]) func `a copy that is current needs no other source`(place: Int) async throws {
        self.origin.script("/known", .body([], status: 304, headers: ["ETag": "\"x\""]))
        let loader = self.fixture.makeLoader { $0.cachePolicy = .honorFreshness }
        var sources = ["/none", "/none", "/b"].map { ImageRequest(url: self.origin.url($0)) }
        sources[place] = ImageRequest(url: self.origin.url("/known"), headers: ["If-None-Match": "\"x\""])
        var request = sources[0]
        request.alternatives = Array(sources.dropFirst())
        request.fallback = try makeGray(1)
        await #expect { try await loader.image(for: request) } throws: { error in
            (error as? LoadError)?.code == .notModified
        }
        #expect(self.origin.requestCount(for: "/b") == 0)
    }

    @Test func `a cancellation tries no alternative`() async throws {
        let gate = Gate()
        self.origin.script("/held", .held(by: gate, body: try makePNG()))
        let loader = self.fixture.makeLoader()
        let request = self.request("/held", "/b")
        let task = Task { try await loader.image(for: request) }
        await self.origin.waitForRequests(1, for: "/held")
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await gate.open()
        #expect(self.origin.requestCount(for: "/b") == 0)
    }

    @Test func `alternatives serve bytes, events and encoded images too`() async throws {
        let loader = self.fixture.makeLoader()
        let request = self.request("/none", "/b")
        #expect(try await loader.data(for: request) == Data(makePNG(width: 20)))
        #expect(try await loader.encoded(request, as: .png).width == 20)
        var widths: [Int] = []
        for try await event in loader.events(for: request) {
            if case .finished(let response) = event { widths.append(response.image.width) }
        }
        #expect(widths == [20])
        #expect(self.origin.requestCount(for: "/b") == 1)
    }

    @Test func `neither an alternative nor the fallback is shown as what is cached`() async throws {
        let loader = self.fixture.makeLoader()
        var request = self.request("/c", "/b")
        request.cachePolicy = .revalidate
        request.fallback = try await loader.image(from: Data(makePNG(width: 5)))
        var cached = 0
        for try await event in loader.events(for: request) { if case .cached = event { cached += 1 } }
        #expect(cached == 0)
        #expect(self.origin.requestedPaths == ["/c"])
    }

    @Test func `an alternative passes the options processor once`() async throws {
        let seen = Box<[String]>([])
        let loader = self.fixture.makeLoader {
            $0.optionsProcessor = { request in
                seen.value = (seen.value ?? []) + [request.url.path]
                return request
            }
        }
        let request = self.request("/none", "/b")
        _ = try await loader.data(for: request)
        _ = try await loader.encoded(request, as: .png)
        _ = try await loader.image(for: request)
        #expect(seen.value == ["/none", "/b", "/none", "/b", "/none", "/b"])
    }

    @Test func `a mirror under the same key is asked although the first URL is known to fail`() async throws {
        let loader = self.fixture.makeLoader()
        var request = ImageRequest(url: self.origin.url("/none"), cacheKey: "image")
        request.alternatives = [ImageRequest(url: self.origin.url("/b"), cacheKey: "image")]
        #expect(try await loader.image(for: request).width == 20)
        try await loader.cache.removeAll()
        #expect(try await loader.image(for: request).width == 20)
        #expect(self.origin.requestedPaths == ["/none", "/b", "/b"])
    }

    @Test func `requests that differ in their alternatives share their loads`() async throws {
        let gate = Gate()
        self.origin.script("/held", .held(by: gate, body: try makePNG()))
        let loader = self.fixture.makeLoader()
        let requests = [self.request("/held", "/b"), self.request("/held", "/c"), self.request("/held")]
        let tasks = requests.map { request in Task { try await loader.image(for: request) } }
        await until { await loader.waiterCount == 3 }
        await gate.open()
        for task in tasks { #expect(try await task.value.width == 8) }
        #expect(self.origin.requestCount(for: "/held") == 1)
    }

    @Test func `an alternative in memory answers without a request`() async throws {
        let loader = self.fixture.makeLoader()
        _ = try await loader.image(for: self.request("/b"))
        let response = try await loader.response(for: self.request("/none", "/b"))
        #expect(response.source == .memory)
        #expect(response.alternative == 0)
        #expect(self.origin.requestCount(for: "/b") == 1)
    }

    @Test func `where all fail, the fallback is the image, and the failure is told`() async throws {
        let loader = self.fixture.makeLoader()
        let fallback = try await loader.image(from: Data(makePNG(width: 5)))
        var request = self.request("/none", "/html")
        request.fallback = fallback
        let response = try await loader.response(for: request)
        #expect(response.image.pixels === fallback.pixels)
        #expect(response.source == .fallback)
        #expect(response.failure?.attempts.count == 2)
        #expect(try await loader.image(for: request).width == 5)
        #expect(await loader.cache.statistics().memory.count == 0)
        let encoded = try await loader.encoded(request, as: .png)
        #expect(encoded.width == 5)
        #expect(encoded.source == .fallback)
        var missing = self.request("/none", "/none2")
        missing.fallback = fallback
        let other = missing
        await #expect(throws: LoadError.self) { try await loader.data(for: other) }
    }
}
