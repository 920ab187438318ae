// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

/// Settings of a request that override the downloader's configuration.
@Suite(.waiting, .timeLimit(.minutes(5)))
struct RequestPolicyTests {
    private let lax = NetworkPolicy.unrestricted
    private let strict: NetworkPolicy

    init() {
        var policy = NetworkPolicy()
        policy.deniedAddresses = [.loopback]
        self.strict = policy
    }

    private func downloader(_ change: (inout DownloadActor.Configuration) -> Void = { _ in }) -> DownloadActor {
        var configuration = DownloadActor.Configuration()
        configuration.timeout = .seconds(60)
        change(&configuration)
        return DownloadActor(configuration: configuration)
    }

    private func request(_ url: URL, _ policy: NetworkPolicy?) -> DownloadRequest {
        var request = DownloadRequest(url: url)
        request.networkPolicy = policy
        return request
    }

    @Test(arguments: [true, false])
    func `a connection that a laxer policy made is not used under a stricter one`(isConfigured: Bool) async throws {
        let nginx = try NginxOrigin(files: ["a": Data([1, 2, 3])])
        // The policy allows the name, so only the address can lead to the refusal.
        let port = try #require(nginx.url("/a").port)
        let address = try url("http://localhost:\(port)/a")
        let downloader = self.downloader { if isConfigured { $0.networkPolicy = self.strict } }
        let open = self.request(address, isConfigured ? self.lax : nil)
        let closed = self.request(address, isConfigured ? nil : self.strict)
        for _ in 0..<2 {
            #expect(try await downloader.response(for: open).body == Data([1, 2, 3]))
            #expect(try await downloader.error(for: closed).code == .addressNotAllowed)
        }
        #expect(try nginx.requests().count == 2)
    }

    @Test func `a connection is used again where the policy allows its address`() async throws {
        let nginx = try NginxOrigin(files: ["a": Data([1, 2, 3])])
        let port = try #require(nginx.url("/a").port)
        let downloader = self.downloader()
        var policy = NetworkPolicy()
        policy.deniedAddresses = [.privateUse]
        var reused: [Bool] = []
        for policy in [nil, policy, nil] {
            let response = try await downloader.response(for: self.request(url("http://localhost:\(port)/a"), policy))
            reused.append(response.metrics.connectionReused)
        }
        #expect(reused == [false, true, true])
    }

    @Test func `a request's policy is asked about its URL and each redirect`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        let elsewhere = try FaultyOrigin(["/b": .body([2])])
        origin.script("/r", .redirect(to: elsewhere.url("/b").absoluteString))
        let downloader = self.downloader()
        #expect(
            try await downloader.error(for: self.request(origin.url("/a"), .publicInternet)).code == .portNotAllowed
        )
        var policy = NetworkPolicy()
        policy.allowedPorts = [Int(origin.port)]
        #expect(try await downloader.response(for: self.request(origin.url("/a"), policy)).body == Data([1]))
        #expect(try await downloader.error(for: self.request(origin.url("/r"), policy)).code == .portNotAllowed)
        #expect(elsewhere.connectionCount == 0)
        let counters = await downloader.counters
        #expect(counters.refused == 2)
        await #expect(throws: DownloadError.self) {
            _ = try await downloader.stream(for: self.request(origin.url("/a"), .publicInternet))
        }
        // A request may relax a stricter configuration.
        let closed = self.downloader { $0.networkPolicy = .publicInternet }
        #expect(try await closed.response(for: self.request(origin.url("/a"), self.lax)).body == Data([1]))
        #expect(try await closed.error(at: origin.url("/a")).code == .portNotAllowed)
    }

    @Test func `a request may be tried again, or not, whatever the configuration says`() async throws {
        let policy = RetryPolicy(maximumAttempts: 3, initialDelay: .milliseconds(1))
        for (configured, own, count) in [(RetryPolicy.never, policy, 3), (policy, .never, 1)] {
            let origin = try FaultyOrigin(["/a": .body([1], status: 503)])
            let downloader = self.downloader { $0.retryPolicy = configured }
            var request = DownloadRequest(url: origin.url("/a"))
            request.retryPolicy = own
            #expect(try await downloader.error(for: request).code == .badStatus)
            #expect(origin.requestCount(for: "/a") == count)
        }
    }

    @Test func `a request may have no cookies where the configuration has a jar`() async throws {
        let origin = try FaultyOrigin(["/a": .echo])
        let jar = CookieJar()
        jar.insert(CookieJar.Cookie(name: "a", value: "b", domain: "127.0.0.1"))
        let downloader = self.downloader { $0.cookieJar = jar }
        var request = DownloadRequest(url: origin.url("/a"))
        for (cookies, isSent) in [
            (nil, true), (CookiePolicy.disabled, false), (.jar(CookieJar()), false), (.jar(jar), true),
        ] {
            request.cookies = cookies
            let text = String(decoding: try await downloader.response(for: request).body, as: UTF8.self)
            #expect(text.contains("Cookie: a=b") == isSent)
        }
        origin.script("/s", .body([1], headers: [("Set-Cookie", "id=7; Path=/")]))
        request.url = origin.url("/s")
        request.cookies = .disabled
        _ = try await downloader.response(for: request)
        #expect(jar.cookies.map(\.name) == ["a"])
    }

    @Test func `requests that differ in a policy share no transfer`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        var requests = [DownloadRequest(url: origin.url("/a"))]
        for change: (inout DownloadRequest) -> Void in [
            { $0.networkPolicy = NetworkPolicy() }, { $0.retryPolicy = RetryPolicy() }, { $0.cookies = .disabled },
            { $0.cookies = .jar(CookieJar()) }, { $0.maximumBodySize = 1 }, { $0.totalTimeout = .seconds(60) },
        ] {
            var request = requests[0]
            change(&request)
            requests.append(request)
        }
        let downloader = self.downloader()
        await downloader.suspend()
        let tasks = requests.map { request in Task { try await downloader.response(for: request) } }
        await until { await downloader.counters.started >= requests.count }
        #expect(await downloader.counters.shared == 0)
        await downloader.resume()
        for task in tasks { _ = try await task.value }
    }
}
