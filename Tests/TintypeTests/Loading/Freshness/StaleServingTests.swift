// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Stale images that are served during a revalidation or after a failed one (RFC 5861).
@Suite(.waiting, .timeLimit(.minutes(5))) struct StaleServingTests {
    let fixture: LoaderFixture
    let clock = TestClock()
    let scripted = ScriptedOrigin()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.scripted)
    }

    private func makeLoader(_ change: (inout LoaderActor.Configuration) -> Void = { _ in }) -> LoaderActor {
        let clock = self.clock
        return self.fixture.makeLoader { configuration in
            configuration.cachePolicy = .honorFreshness
            configuration.now = { clock.now }
            change(&configuration)
        }
    }

    @Test func `a stale image is served at once and replaced behind it`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=10, stale-while-revalidate=60"], at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url)
        _ = try await loader.image(for: request)
        await loader.waitForPendingStores()
        origin.revise()
        self.clock.advance(by: 20)
        // The new image arrives after both loaders have served the old one.
        let gate = Gate()
        origin.fail(with: .held(by: gate, body: try makePNG(width: 11)))
        // One loader has the image in memory, the other one only on disk.
        let loaders = [loader, self.makeLoader()]
        for loader in loaders {
            let stale = try await loader.response(for: request)
            #expect(stale.revalidation == .inBackground)
            #expect(stale.image.width == 10)
        }
        await origin.waitForRequests(3)
        origin.fail(with: nil)
        await gate.open()
        for loader in loaders { await loader.waitForRevalidations() }
        #expect(try await loader.image(for: request).width == 11)
    }

    @Test func `one revalidation runs for an image`() async throws {
        let gate = Gate()
        let origin = RevisingOrigin(["Cache-Control": "max-age=10, stale-while-revalidate=60"], at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url)
        _ = try await loader.image(for: request)
        self.clock.advance(by: 20)
        origin.fail(with: .held(by: gate, body: try makePNG(width: 30)))
        for _ in 0..<100 { #expect(try await loader.image(for: request).width == 10) }
        await origin.waitForRequests(2)
        await gate.open()
        await loader.waitForRevalidations()
        #expect(origin.requests.count == 2)
        #expect(origin.requests[1]["If-None-Match"] == "\"0\"")
    }

    @Test func `at most 64 products of a site are revalidated at a time, and less urgently than callers wait`()
        async throws
    {
        let loader = self.makeLoader()
        let fields: HeaderFields = ["Cache-Control": "max-age=10, stale-while-revalidate=60"]
        let hosts = ["origin.example", "b.origin.example", "ORIGIN.Example", "%6Frigin.example"]
        let requests = (0..<66).map { ImageRequest(url: self.scripted.url("/\($0)", host: hosts[$0 % hosts.count])) }
        for (index, request) in requests.enumerated() {
            self.scripted.script("/\(index)", .body(try makePNG(width: 10), headers: fields))
            _ = try await loader.image(for: request)
        }
        self.clock.advance(by: 20)
        let gate = Gate()
        for index in 0..<66 { self.scripted.script("/\(index)", .held(by: gate, body: try makePNG(width: 11))) }
        for request in requests { #expect(try await loader.image(for: request).width == 10) }
        for index in 0..<64 { await self.scripted.waitForRequests(2, for: "/\(index)") }
        #expect(self.scripted.priorities(for: "/0") == [.normal, .low])
        await gate.open()
        await loader.waitForRevalidations()
        #expect(self.scripted.requestedPaths.count == 66 + 64)
        // The next request revalidates what was left out.
        #expect(try await loader.image(for: requests[65]).width == 10)
        await loader.waitForRevalidations()
        #expect(self.scripted.requestCount(for: "/65") == 2)
    }

    @Test func `bytes are revalidated behind their reader too`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=10, stale-while-revalidate=60"], at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url)
        let first = try await loader.data(for: request)
        origin.revise()
        self.clock.advance(by: 20)
        let stale = try await loader.dataResponse(for: request)
        #expect(stale.revalidation == .inBackground)
        #expect(stale.data == first)
        await loader.waitForRevalidations()
        #expect(try await loader.data(for: request) != first)
        #expect(origin.requests.count == 2)
    }

    @Test func `a loader that goes away ends its revalidations`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=10, stale-while-revalidate=60"], at: self.scripted)
        do {
            let loader = self.makeLoader()
            let request = ImageRequest(url: origin.url)
            _ = try await loader.image(for: request)
            self.clock.advance(by: 20)
            origin.fail(with: .silence)
            _ = try await loader.image(for: request)
            await origin.waitForRequests(2)
        }
        await origin.waitForCancellation()
    }

    @Test(arguments: [
        ScriptedResponse.body([1], status: 503), .body([1], status: 500), .reset, .failure(.invalidResponse),
        ScriptedResponse([.send([1]), .fail(.bodyCutShort)]), .failure(.timedOut), .failure(.hostNotFound),
        .failure(.cannotConnect), .failure(.tlsFailed),
    ])
    func `a failed origin is stood in for`(failure: ScriptedResponse) async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=10, stale-if-error=60"], at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url)
        _ = try await loader.image(for: request)
        origin.fail(with: failure)
        self.clock.advance(by: 20)
        let stale = try await loader.response(for: request)
        #expect(stale.revalidation == .failed)
        #expect(stale.image.width == 10)
        // Each load revalidates again, and throws the error when the stale time is over.
        let count = origin.requests.count
        self.clock.advance(by: 60)
        await #expect(throws: LoadError.self) { try await loader.image(for: request) }
        #expect(origin.requests.count > count)
    }

    @Test func `an image in memory stands in for a failing origin only if no other body came meanwhile`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=10, stale-if-error=600"], at: self.scripted)
        let loader = self.makeLoader { $0.disk = nil }
        let request = ImageRequest(url: origin.url)
        _ = try await loader.image(for: request)
        self.clock.advance(by: 20)
        let gate = Gate()
        origin.fail(with: .held(by: gate, body: try makePNG(width: 30)))
        async let reloaded = loader.image(for: ImageRequest(url: origin.url, cachePolicy: .reload))
        await origin.waitForRequests(2)
        let stale = Task { try await loader.image(for: request) }
        await until { await loader.queueCount(of: request) == 1 }
        origin.fail(with: .body([1], status: 503))
        await gate.open()
        #expect(try await reloaded.width == 30)
        await #expect(throws: LoadError.self) { try await stale.value }
    }

    /// Origins that permit a stale response on errors, or do not (RFC 5861, 4).
    @Test(arguments: [true, false]) func `a failed revalidation is stood in for where the origin permits it`(
        permits: Bool
    ) async throws {
        let origin = RevisingOrigin(
            ["Cache-Control": permits ? "max-age=10, stale-if-error=60" : "max-age=10"],
            at: self.scripted
        )
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url, cachePolicy: .revalidate)
        _ = try await loader.image(for: request)
        origin.fail(with: .body([1], status: 503))
        guard permits else {
            await #expect(throws: LoadError.self) { try await loader.image(for: request) }
            return
        }
        let stale = try await loader.response(for: request)
        #expect(stale.revalidation == .failed)
        #expect(stale.image.width == 10)
        self.clock.advance(by: 80)
        await #expect(throws: LoadError.self) { try await loader.image(for: request) }
    }

    @Test(arguments: [404, 410, 403]) func `an answer that is no failure is told`(status: Int) async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=10, stale-if-error=60"], at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(url: origin.url)
        _ = try await loader.image(for: request)
        origin.fail(with: .body([1], status: status))
        self.clock.advance(by: 20)
        await #expect(throws: LoadError.self) { try await loader.image(for: request) }
    }
}
