// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCluster

@Suite(.waiting, .timeLimit(.minutes(5))) struct SharedFetcherTests {
    /// An origin that counts its requests.
    private final class CountedOrigin: ImageFetching {
        private let counter = Locked(0)
        private let respond: @Sendable (DownloadRequest) throws -> DownloadResponse

        init(_ respond: @escaping @Sendable (DownloadRequest) throws -> DownloadResponse) {
            self.respond = respond
        }

        var count: Int { self.counter.withLock { $0 } }

        func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
            self.counter.withLock { $0 += 1 }
            return try self.respond(request)
        }
    }

    /// Sends a request through the fetchers of two machines, one after the other; returns the number that arrived.
    private func count(
        _ request: DownloadRequest,
        _ respond: @escaping @Sendable (DownloadRequest) throws -> DownloadResponse
    ) async throws -> Int {
        let redis = try await RedisServer()
        let origin = CountedOrigin(respond)
        for _ in 0..<2 {
            let cluster = try Cluster(Cluster.Configuration(redis))
            _ = try? await cluster.fetcher(over: origin).response(for: request, observer: FetchObserver())
            #expect(cluster.statistics.leases == 0)
            await cluster.shutdown()
        }
        return origin.count
    }

    private func makeRequest(_ change: (inout DownloadRequest) -> Void = { _ in }) throws -> DownloadRequest {
        let url = try #require(URL(string: "https://example.org/a.jpg"))
        var request = DownloadRequest(url: url, headers: ["If-None-Match": "\"1\""])
        change(&request)
        return request
    }

    private func respond(
        _ status: Int,
        _ headers: HeaderFields = [:]
    ) -> @Sendable (DownloadRequest) throws -> DownloadResponse {
        { request in DownloadResponse(body: Data([1]), url: request.url, status: status, headers: headers) }
    }

    @Test func `machines share a confirmation`() async throws {
        // On a busy machine, the outcome may be gone before the second machine looks for it.
        try await until { try await self.count(self.makeRequest(), self.respond(304)) == 1 }
    }

    @Test(arguments: ["no-store", "private, max-age=60"])
    func `machines do not share a response that HTTP keeps from shared caches`(control: String) async throws {
        #expect(try await self.count(self.makeRequest(), self.respond(200, ["Cache-Control": control])) == 2)
    }

    private static let rules: [@Sendable (inout DownloadRequest) -> Void] = [
        { $0.allowsInvalidCertificates = true }, { $0.unixSocketPath = "/run/a" }, { $0.proxy = ProxyPolicy.none },
        { $0.networkPolicy = .publicInternet }, { $0.credentials = .bearer("a") },
        { $0.headers["Authorization"] = "a" }, { $0.headers["Cache-Control"] = "no-cache" },
        { $0.acceptableContentTypes = ["image/png"] },
    ]

    @Test(arguments: Self.rules.indices)
    func `a request with rules of its own shares nothing`(index: Int) async throws {
        let request = try self.makeRequest { Self.rules[index](&$0) }
        #expect(try await self.count(request, self.respond(304)) == 2)
    }

    @Test(arguments: [404, 410, 429, 503])
    func `machines share the failures of an origin`(status: Int) async throws {
        let count = try await self.count(self.makeRequest()) { request in
            throw DownloadError(
                code: .badStatus,
                message: "",
                url: request.url,
                status: status,
                headers: ["Retry-After": "60"]
            )
        }
        #expect(count == 1)
    }

    @Test(arguments: [DownloadError.Code.hostNotFound, .cannotConnect, .tlsFailed, .timedOut, .bodyTooLarge, .refused])
    func `a failure that may be of one machine is not shared`(code: DownloadError.Code) async throws {
        let count = try await self.count(self.makeRequest()) { _ in throw DownloadError(code: code, message: "") }
        #expect(count == 2)
    }

    @Test func `a request that accepts a status gets no failure because of it`() async throws {
        let redis = try await RedisServer()
        let cluster = try Cluster(Cluster.Configuration(redis))
        let origin = CountedOrigin { request in
            guard request.acceptableStatusCodes != nil else {
                throw DownloadError(code: .badStatus, message: "", url: request.url, status: 404)
            }
            return DownloadResponse(body: Data([1]), url: request.url, status: 404)
        }
        let fetcher = cluster.fetcher(over: origin)
        await #expect(throws: DownloadError.self) {
            _ = try await fetcher.response(for: self.makeRequest(), observer: FetchObserver())
        }
        let accepting = try self.makeRequest { $0.acceptableStatusCodes = [404] }
        #expect(try await fetcher.response(for: accepting, observer: FetchObserver()).status == 404)
        await cluster.shutdown()
    }

    @Test func `a caller may ask again, and only the machine that asked remembers a failure`() async throws {
        let redis = try await RedisServer()
        let cluster = try Cluster(Cluster.Configuration(redis))
        let origin = CountedOrigin { request in
            throw DownloadError(code: .badStatus, message: "", url: request.url, status: 404)
        }
        let fetcher = cluster.fetcher(over: origin)
        func lifetime(_ request: DownloadRequest) async throws -> Duration? {
            do {
                _ = try await fetcher.response(for: request, observer: FetchObserver())
                return .zero
            } catch {
                return FailureLifetimes().lifetime(of: error, now: Date())
            }
        }
        let request = try self.makeRequest()
        #expect(try await lifetime(request) == .seconds(30))
        // The failure ends in Redis, not so long after the last load.
        #expect(try await lifetime(request) == nil)
        #expect(origin.count == 1)
        #expect(try await lifetime(self.makeRequest { $0.retriesFailures = true }) == .seconds(30))
        #expect(origin.count == 2)
        await cluster.shutdown()
    }
}
