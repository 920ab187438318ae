// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Failures that a loader remembers.
@Suite(.waiting, .timeLimit(.minutes(5))) struct RememberedFailureTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()
    let clock = TestClock()
    let url: URL

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
        self.url = self.origin.url("/a")
    }

    private func makeLoader(_ change: (inout LoaderActor.Configuration) -> Void = { _ in }) -> LoaderActor {
        let clock = self.clock
        return self.fixture.makeLoader { configuration in
            configuration.now = { clock.now }
            change(&configuration)
        }
    }

    private var requests: Int { self.origin.requestCount(for: "/a") }

    private func code(_ loader: LoaderActor, _ request: ImageRequest) async throws -> LoadError.Code? {
        do {
            _ = try await loader.image(for: request)
            return nil
        } catch let error as LoadError {
            return error.code
        }
    }

    @Test(arguments: [404, 410])
    func `a thousand loads of what is not there are one request, until the lifetime ends`(status: Int) async throws {
        self.origin.script("/a", .body([1], status: status))
        let loader = self.makeLoader()
        let url = self.url
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<1_000 {
                group.addTask {
                    let side = index % 20 + 1
                    let request = ImageRequest(url: url, thumbnail: .fit(width: side, height: side))
                    await #expect { try await loader.image(for: request) } throws: { error in
                        (error as? LoadError)?.code == .badStatus
                    }
                }
            }
        }
        #expect(self.requests == 1)
        self.clock.advance(by: 31)
        #expect(try await self.code(loader, ImageRequest(url: url)) == .badStatus)
        #expect(self.requests == 2)
    }

    @Test func `bytes that are no image are remembered for images, and not for the bytes`() async throws {
        self.origin.script("/a", .body(Array("<html>".utf8)))
        let loader = self.makeLoader()
        let request = ImageRequest(url: self.url)
        for _ in 0..<3 { #expect(try await self.code(loader, request) == .notAnImage) }
        #expect(self.requests == 1)
        #expect(try await loader.data(for: request) == Data("<html>".utf8))
        #expect(self.requests == 2)
        self.clock.advance(by: 31)
        #expect(try await self.code(loader, request) == .notAnImage)
        #expect(self.requests == 3)
    }

    @Test(arguments: [500, 503, 403, 401, 429])
    func `other statuses, and trouble on the way, are tried anew`(status: Int) async throws {
        let loader = self.makeLoader()
        self.origin.script("/a", .body([1], status: status))
        for _ in 0..<2 { #expect(try await self.code(loader, ImageRequest(url: self.url)) == .badStatus) }
        self.origin.script("/a", .reset)
        for _ in 0..<2 { #expect(try await self.code(loader, ImageRequest(url: self.url)) == .connectionLost) }
        #expect(self.requests == 4)
    }

    @Test(arguments: [("100", 99.0, 1.0), ("100000", 599, 1), ("0", -1, 0)])
    func `Retry-After is obeyed, up to a limit`(value: String, during: Double, after: Double) async throws {
        self.origin.script("/a", .body([1], status: 503, headers: ["Retry-After": value]))
        let loader = self.makeLoader()
        let request = ImageRequest(url: self.url)
        #expect(try await self.code(loader, request) == .badStatus)
        if during > 0 {
            self.clock.advance(by: during)
            #expect(try await self.code(loader, request) == .badStatus)
            #expect(self.requests == 1)
        }
        self.clock.advance(by: after)
        #expect(try await self.code(loader, request) == .badStatus)
        #expect(self.requests == 2)
    }

    @Test(arguments: [(404, "2", 29.0, 2.0), (410, "2", 29, 2), (404, "100", 99, 2), (503, "2", 1, 2)])
    func `of a lifetime and of Retry-After the longer counts`(
        status: Int,
        value: String,
        during: Double,
        after: Double
    ) async throws {
        self.origin.script("/a", .body([1], status: status, headers: ["Retry-After": value]))
        let loader = self.makeLoader()
        for (pause, requests) in [(0, 1), (during, 1), (after, 2)] {
            self.clock.advance(by: pause)
            #expect(try await self.code(loader, ImageRequest(url: self.url)) == .badStatus)
            #expect(self.requests == requests)
        }
        #expect(await loader.statistics().rememberedFailures == 1)
    }

    @Test(arguments: [true, false])
    func `retryFailed and a reload pass what is remembered, and a success clears it`(isReload: Bool) async throws {
        self.origin.script("/a", .body([1], status: 404))
        let loader = self.makeLoader()
        var request = ImageRequest(url: self.url)
        #expect(try await self.code(loader, request) == .badStatus)
        self.origin.script("/a", .body(try makePNG()))
        #expect(try await self.code(loader, request) == .badStatus)
        if isReload { request.cachePolicy = .reload } else { request.options = .retryFailed }
        #expect(try await loader.image(for: request).width == 8)
        try await loader.cache.removeAll()
        #expect(try await loader.image(for: self.url).width == 8)
        #expect(self.requests == 3)
    }

    @Test func `a failure never hides what is cached`() async throws {
        self.origin.script("/a", .body(try makePNG()))
        let loader = self.makeLoader()
        var request = ImageRequest(url: self.url, options: .waitForStore)
        _ = try await loader.image(for: request)
        self.origin.script("/a", .body([1], status: 404))
        request.cachePolicy = .revalidate
        #expect(try await self.code(loader, request) == .badStatus)
        #expect(try await loader.image(for: self.url).width == 8)
        try await loader.cache.removeAll(from: .memory)
        #expect(try await loader.image(for: self.url).width == 8)
        #expect(try await loader.data(for: ImageRequest(url: self.url)).count > 0)
        #expect(self.requests == 2)
    }

    @Test func `the program may forget, and keep failures from being remembered`() async throws {
        self.origin.script("/a", .body([1], status: 404))
        let asked = Box<LoadError.Code>()
        let loader = self.makeLoader {
            $0.shouldRememberFailure = { error, _ in
                asked.value = error.code
                return false
            }
        }
        for _ in 0..<2 { #expect(try await self.code(loader, ImageRequest(url: self.url)) == .badStatus) }
        #expect(asked.value == .badStatus)
        let other = self.makeLoader()
        #expect(try await self.code(other, ImageRequest(url: self.url)) == .badStatus)
        other.forgetFailures()
        #expect(try await self.code(other, ImageRequest(url: self.url)) == .badStatus)
        #expect(self.requests == 4)
        let without = self.makeLoader { $0.failureLifetimes = .none }
        for _ in 0..<2 { #expect(try await self.code(without, ImageRequest(url: self.url)) == .badStatus) }
        #expect(self.requests == 6)
    }

    @Test(arguments: [true, false])
    func `a removal, or a store, forgets the failures of all sizes`(isStore: Bool) async throws {
        self.origin.script("/a", .body(try makePNG().dropLast(20)))
        let loader = self.makeLoader()
        let small = ImageRequest(url: self.url, thumbnail: .fit(width: 4, height: 4))
        #expect(try await self.code(loader, small) == .truncated)
        self.origin.script("/a", .body(try makePNG()))
        let other = ImageRequest(url: self.origin.url("/b"), thumbnail: .fit(width: 4, height: 4))
        #expect(try await self.code(loader, other) == .badStatus)
        #expect(try await self.code(loader, small) == .truncated)
        if isStore {
            try await loader.store(Data(try makePNG()), for: ImageRequest(url: self.url))
            try await loader.cache.removeAll()
        } else {
            try await loader.remove(ImageRequest(url: self.url))
        }
        #expect(try await self.code(loader, small) == nil)
        #expect(try await self.code(loader, other) == .badStatus)
        #expect(self.origin.requestCount(for: "/b") == 1)
    }

    @Test(arguments: [
        (FailureLifetimes(undecodable: nil), 3), (FailureLifetimes(undecodable: .seconds(5)), 2),
        (FailureLifetimes(undecodable: .seconds(7)), 1),
    ])
    func `bytes that are no image are remembered for a lifetime of their own`(
        lifetimes: FailureLifetimes,
        requests: Int
    ) async throws {
        self.origin.script("/a", .body(Array("<html>".utf8)))
        let loader = self.makeLoader { $0.failureLifetimes = lifetimes }
        for _ in 0..<3 {
            #expect(try await self.code(loader, ImageRequest(url: self.url)) == .notAnImage)
            self.clock.advance(by: 3)
        }
        #expect(self.requests == requests)
    }

    @Test(arguments: [(Duration?.none, 3), (.seconds(5), 2), (.seconds(7), 1), (.seconds(-1), 3)])
    func `Retry-After is obeyed as long as the configuration says`(maximum: Duration?, requests: Int) async throws {
        self.origin.script("/a", .body([1], status: 503, headers: ["Retry-After": "100"]))
        let loader = self.makeLoader { $0.failureLifetimes.maximumRetryAfter = maximum }
        for _ in 0..<3 {
            #expect(try await self.code(loader, ImageRequest(url: self.url)) == .badStatus)
            self.clock.advance(by: 3)
        }
        #expect(self.requests == requests)
    }
}
