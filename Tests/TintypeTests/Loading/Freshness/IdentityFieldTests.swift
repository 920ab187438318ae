// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Images that depend on a request field that the response does not mention.
@Suite(.waiting, .timeLimit(.minutes(5))) struct IdentityFieldTests {
    private let fixture: LoaderFixture
    private let origin = ScriptedOrigin()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
    }

    private func makeLoader(
        _ policy: CachePolicy = .honorFreshness,
        _ change: (inout LoaderActor.Configuration) -> Void = { _ in }
    ) -> LoaderActor {
        self.fixture.makeLoader {
            $0.cachePolicy = policy
            change(&$0)
        }
    }

    /// Scripts an image as wide as the request field is long, or 5 pixels wide if the request has no such field.
    private func script(_ name: String, vary: String? = nil) {
        self.origin.script(
            "/a",
            .answer { request in
                let value = request.headers[name]
                guard let body = try? makePNG(width: value?.utf8.count ?? 5) else { return .reset }
                var fields: HeaderFields = ["Cache-Control": "max-age=600"]
                fields["Vary"] = vary
                return .body(body, headers: fields)
            }
        )
    }

    private func request(_ headers: HeaderFields, _ policy: CachePolicy? = nil) -> ImageRequest {
        ImageRequest(url: self.origin.url("/a"), headers: headers, options: [.waitForStore], cachePolicy: policy)
    }

    private static let names = ["X-User", "X-Api-Key", "X-Tenant", "Referer", "Origin", "X-Forwarded-For", "Cookie"]

    @Test(arguments: Self.names, [nil, "Accept", "X-User"])
    func `a field that may identify the user keeps images apart`(name: String, vary: String?) async throws {
        self.script(name, vary: vary)
        for policy in [CachePolicy.honorFreshness, .neverRevalidate] {
            for _ in 0..<2 {
                // Each round uses a loader with an empty memory.
                let loader = self.makeLoader(policy)
                #expect(try await loader.image(for: self.request([name: "alice..."])).width == 8)
                #expect(try await loader.image(for: self.request([name: "bob"])).width == 3)
                #expect(try await loader.image(for: self.request([:])).width == 5)
                #expect(try await loader.image(for: self.request([name: "bob"])).width == 3)
            }
        }
        // Each policy takes at most three requests, however often the images are loaded.
        #expect(self.origin.requestCount(for: "/a") <= 6)
    }

    @Test func `an image of another's is in no cache`() async throws {
        self.script("X-User")
        let loader = self.makeLoader()
        _ = try await loader.image(for: self.request(["X-User": "alice"]))
        for loader in [loader, self.makeLoader()] {
            let error = await #expect(throws: LoadError.self) {
                try await loader.image(for: self.request(["X-User": "bob"], .cacheOnly))
            }
            #expect(error?.code == .notInCache)
            #expect(try await loader.image(for: self.request(["X-User": "alice"], .cacheOnly)).width == 5)
        }
        // A variant of another user's image is in no cache either.
        let thumbnail = { (user: String) in
            ImageRequest(
                source: .init(url: self.origin.url("/a"), headers: ["X-User": user]),
                rendering: .init(thumbnail: .fit(width: 2, height: 2)),
                caching: .init(variants: CacheUse()),
                options: [.waitForStore]
            )
        }
        _ = try await self.makeLoader().image(for: thumbnail("alice"))
        let count = self.origin.requestCount(for: "/a")
        _ = try await self.makeLoader().image(for: thumbnail("bob"))
        #expect(self.origin.requestCount(for: "/a") == count + 1)
    }

    @Test func `what a request of another policy has stored is found in the cache, and replaced by a reload`()
        async throws
    {
        self.script("Accept-Language", vary: "Accept-Language")
        let headers: HeaderFields = ["Accept-Language": "deutsch"]
        let honoring = self.request(headers, .honorFreshness)
        _ = try await self.makeLoader(.neverRevalidate).image(for: honoring)
        let offline = try await self.makeLoader(.neverRevalidate).response(for: self.request(headers, .cacheOnly))
        #expect((offline.source, offline.image.width) == (.disk, 7))
        self.origin.script("/a", .body(try makePNG(width: 9), headers: ["Cache-Control": "max-age=600"]))
        #expect(try await self.makeLoader(.neverRevalidate).image(for: self.request(headers, .reload)).width == 9)
        #expect(try await self.makeLoader(.neverRevalidate).image(for: honoring).width == 9)
    }

    @Test func `requests that overlap are not shared across such a field`() async throws {
        let door = Gate()
        let body = try makePNG()
        self.origin.script("/a", .held(by: door, body: body))
        let loader = self.makeLoader()
        let tasks = ["alice", "bob", "alice"].map { user in
            let request = self.request(["X-User": user])
            return Task { try await loader.image(for: request) }
        }
        await self.origin.waitForRequests(2, for: "/a")
        await door.open()
        for task in tasks { _ = try await task.value }
        #expect(self.origin.requestCount(for: "/a") == 2)
    }

    @Test func `a prefetch stores under the key that a load finds`() async throws {
        self.script("X-User")
        let requests = ["alice", "bob"].map { self.request(["X-User": $0, "Accept-Language": "de"]) }
        for await progress in Prefetcher(loader: self.makeLoader(), destination: .disk).prefetch(requests) {
            #expect(throws: Never.self) { try progress.latest.outcome.get() }
        }
        let loader = self.makeLoader()
        #expect(try await loader.response(for: self.request(["X-User": "bob"])).source == .disk)
        #expect(try await loader.image(for: self.request(["X-User": "alice"])).width == 5)
        #expect(self.origin.requestCount(for: "/a") == 2)
    }

    @Test(arguments: ["Accept", "accept-language", "User-Agent", "If-None-Match", "DNT"])
    func `a field that only says what is wanted keeps nothing apart`(name: String) async throws {
        self.script("X-User")
        for value in ["a", "b"] {
            #expect(try await self.makeLoader().image(for: self.request([name: value])).width == 5)
        }
        #expect(self.origin.requestCount(for: "/a") == 1)
    }
}
