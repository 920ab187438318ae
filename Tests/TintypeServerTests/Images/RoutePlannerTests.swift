// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestTraits

@testable import TintypeServer

/// The routes of URLs.
@Suite(.waiting, .timeLimit(.minutes(5))) struct RoutePlannerTests {
    private func route(
        _ target: String,
        change: (inout ImageServer.Configuration) -> Void = { _ in }
    ) async throws -> ImageRoute {
        var configuration = ImageServer.Configuration()
        change(&configuration)
        configuration.addresses.allowsSecurityOptions = true
        configuration.loader.disk = nil
        configuration.logFormat = nil
        configuration.sources.localRoot = URL(filePath: "/")
        configuration.sources.s3 = ImageServer.Configuration.Sources.S3()
        let service = try await ImageService(configuration)
        let (planner, purges) = (service.handler.planner, service.handler.purges)
        let route = try planner.route(for: target, acceptsWebP: false, now: 0, purges: purges)
        await service.shutdown()
        return route
    }

    @Test(arguments: [
        ("http://e.example/a", "http://e.example"), ("HTTP://E.example:80/b/c", "http://e.example"),
        ("http://e.example%3Fa=/b", "http://e.example"), ("https://e.example/a", "https://e.example"),
        ("http://e.example:8080/a", "http://e.example:8080"), ("http://[::1]:81/a", "http://[::1]:81"),
        ("local:///a/b", "local://"), ("s3://bucket/a/b", "s3://bucket"),
    ])
    func `sources on the same host and port share an origin`(source: String, origin: String) async throws {
        #expect(try await self.route("/_/plain/\(source)").origin == origin)
    }

    @Test func `limits in a URL are part of the key of its image`() async throws {
        let target = "/unsafe/w:10/plain/https://a.example/a.jpg"
        var keys: Set<String> = []
        for limit in ["", "msr:1/", "mafr:1/", "msfs:1000/", "mrd:100/"] {
            let route = try await self.route(target.replacing("w:10/", with: "w:10/\(limit)"))
            keys.insert(route.request.transforms.key)
        }
        #expect(keys.count == 5)
    }

    @Test(arguments: [0, 2, 6]) func `results are encoded with the server's effort of WebP`(effort: Int) async throws {
        let route = try await self.route("/_/plain/https://a.example/a@webp") { $0.images.webpEffort = effort }
        guard case .encode(_, let encoding) = route.work else {
            Issue.record("The result is not encoded.")
            return
        }
        #expect(encoding.choices.map(\.options.webpEffort) == [effort])
    }

    @Test(arguments: ["jpg", "png", "gif", "webp"])
    func `a setting for one format changes the cache keys of that format only`(format: String) async throws {
        var encodings: [OutputEncoding] = []
        for change: (inout ImageServer.Configuration) -> Void in [
            { _ in }, { $0.images.isProgressive = true }, { $0.images.pngLevel = 9 }, { $0.images.webpEffort = 2 },
        ] {
            let route = try await self.route("/_/plain/https://a.example/a@\(format)", change: change)
            guard case .encode(_, let encoding) = route.work else {
                Issue.record("The result is not encoded.")
                return
            }
            encodings.append(encoding)
        }
        let changed = ["jpg": 1, "png": 2, "webp": 3][format]
        for index in 1..<4 { #expect((encodings[index] == encodings[0]) == (index != changed)) }
    }

    @Test func `the key of a file or an object is encoded once`() async throws {
        let file = try await self.route("/_/plain/local:///%C3%A9%2520%23.png").request.url.absoluteString
        #expect(file == "local:///%C3%A9%2520%23.png")
        let object = try await self.route("/_/plain/s3://bucket/a%2520b%3Fv%2520/1").request.url.absoluteString
        #expect(object == "s3://bucket/a%2520b?v%2520%2F1")
    }
}
