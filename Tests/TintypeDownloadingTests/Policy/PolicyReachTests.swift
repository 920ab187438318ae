// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

/// Checks that the policy applies to every request that reaches libcurl.
@Suite(.waiting, .timeLimit(.minutes(5)))
struct PolicyReachTests {
    @Test func `a stream is checked`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        let downloader = DownloadActor(configuration: Self.configuration(.publicInternet))
        for text in [
            "http://10.0.0.1/", "http://localhost/", "http://user@example.org/", "http://example.org:\(origin.port)/",
        ] {
            let request = DownloadRequest(url: try url(text))
            await #expect(throws: DownloadError.self) { _ = try await downloader.stream(for: request) }
        }
        #expect(origin.connectionCount == 0)
    }

    @Test func `a URL that a hook puts in is checked`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        let target = origin.url("/a")
        let hooks = DownloadHooks(modifyRequest: { request in
            var request = request
            request.url = target
            return request
        })
        let downloader = DownloadActor(configuration: Self.configuration(.publicInternet), hooks: hooks)
        let error = try await downloader.error(at: url("http://example.org/"))
        #expect(error.code == .portNotAllowed)
        #expect(origin.connectionCount == 0)
    }

    @Test func `a proxy that the program names is reached, whatever its address, and hosts are checked before`()
        async throws
    {
        let proxy = try FaultyOrigin()
        proxy.script("http://example.org/a", .body([1]))
        var configuration = Self.configuration(.publicInternet)
        configuration.proxy = .proxy("http://127.0.0.1:\(proxy.port)")
        let downloader = DownloadActor(configuration: configuration)
        #expect(try await downloader.body(at: url("http://example.org/a")) == Data([1]))
        #expect(try await downloader.error(at: url("http://10.0.0.1/a")).code == .addressNotAllowed)
        #expect(try await downloader.error(at: url("http://metadata.google.internal/a")).code == .hostNotAllowed)
        #expect(proxy.connectionCount == 1)
    }

    @Test(
        arguments: [
            "", " ", "\t", "://", "http://", "http://:3128", "http:///", "ftp://127.0.0.1:1", "file:///tmp", "?", "#",
            "/",
            String(repeating: "a", count: 9_000_000),
        ],
        [true, false]
    )
    func `a setting that names no proxy is refused, and nothing is fetched`(
        proxy: String,
        isOfRequest: Bool
    )
        async throws
    {
        let origin = try FaultyOrigin(["/a": .body([1])])
        var configuration = Self.configuration(.publicInternet)
        configuration.networkPolicy.allowedPorts = nil
        configuration.networkPolicy.deniedHosts = []
        var request = DownloadRequest(url: try url("http://localhost:\(origin.port)/a"))
        if isOfRequest { request.proxy = .proxy(proxy) } else { configuration.proxy = .proxy(proxy) }
        let error = try await DownloadActor(configuration: configuration).error(for: request)
        #expect([.invalidURL, .invalidHeader].contains(error.code), "\(error)")
        #expect(origin.connectionCount == 0)
    }

    @Test(arguments: ["", "http://", " "], ["http_proxy", "all_proxy", "no_proxy"])
    func `empty proxies of the environment leave the check on`(proxy: String, variable: String) async throws {
        await #expect(processExitsWith: .success) { [proxy = proxy as String, variable = variable as String] in
            setenv(variable, proxy, 1)
            let origin = try FaultyOrigin(["/a": .body([1])])
            var configuration = DownloadActor.Configuration()
            configuration.networkPolicy.deniedAddresses = [.loopback]
            configuration.proxy = .environment
            let request = DownloadRequest(url: try url("http://localhost:\(origin.port)/a"))
            let response = try? await DownloadActor(configuration: configuration).response(for: request)
            exit(response == nil && origin.connectionCount == 0 ? 0 : 1)
        }
    }

    @Test(arguments: ["127.0.0.1", "http://127.0.0.1", "socks4a://127.0.0.1", "SOCKS5h://u:p@127.0.0.1"])
    func `what libcurl takes for a proxy is one`(proxy: String) async throws {
        let origin = try FaultyOrigin(["/a": .body([1]), "http://example.org/a": .body([2])])
        var configuration = Self.configuration(.publicInternet)
        configuration.proxy = .proxy("\(proxy):\(origin.port)")
        let downloader = DownloadActor(configuration: configuration)
        let task = Task { try await downloader.body(at: url("http://example.org/a")) }
        await until { origin.connectionCount == 1 }
        origin.stop()
        _ = await task.result
    }

    @Test func `a socket without a path is not the host`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        var request = DownloadRequest(url: try url("http://localhost:\(origin.port)/a"))
        request.unixSocketPath = ""
        var policy = NetworkPolicy()
        policy.deniedAddresses = [.loopback]
        _ = try await DownloadActor(configuration: Self.configuration(policy)).error(for: request)
        #expect(origin.connectionCount == 0)
    }

    @Test func `a host that is no matter of the proxy is checked`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        var policy = NetworkPolicy()
        policy.deniedAddresses = [.loopback]
        var configuration = Self.configuration(policy)
        configuration.proxy = .proxy("http://127.0.0.1:\(origin.port)", exceptions: ["localhost"])
        let error = try await DownloadActor(configuration: configuration).error(
            at: url("http://localhost:\(origin.port)/a")
        )
        #expect(error.code == .addressNotAllowed)
        #expect(origin.connectionCount == 0)
    }

    private static func configuration(_ policy: NetworkPolicy) -> DownloadActor.Configuration {
        var configuration = DownloadActor.Configuration()
        configuration.networkPolicy = policy
        return configuration
    }
}
