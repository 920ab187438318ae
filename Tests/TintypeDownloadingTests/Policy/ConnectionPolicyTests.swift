// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

/// The policy on real sockets, with addresses that every machine has.
@Suite(.waiting, .timeLimit(.minutes(5)))
struct ConnectionPolicyTests {
    @Test func `a name is refused at the address it turns out to have`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        var policy = NetworkPolicy()
        policy.deniedAddresses = [.loopback]
        // The policy allows the name, so only the look-up can lead to the refusal.
        let error = try await Self.downloader(policy).error(at: url("http://localhost:\(origin.port)/a"))
        #expect(error.code == .addressNotAllowed)
        #expect(error.message.contains("in the loopback range"))
        #expect(origin.connectionCount == 0)
        #expect(try await DownloadActor().body(at: origin.url("/a")) == Data([1]))
    }

    @Test func `an address that is denied does not stand in the way of one that is allowed`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        var policy = NetworkPolicy()
        // The hosts file of most systems has both addresses for this name. If it has only one, the test still passes.
        policy.deniedAddresses = [AddressSet(name: "first", ranges: [try #require(AddressRange("::1"))])]
        #expect(try await Self.downloader(policy).body(at: url("http://localhost:\(origin.port)/a")) == Data([1]))
    }

    @Test func `a host that does not answer is no matter of the policy`() async throws {
        let silent = try url("http://127.0.0.1:1/")
        let error = try await Self.downloader(.unrestricted).error(at: silent)
        #expect(error.code == .cannotConnect)
        var policy = NetworkPolicy.publicInternet
        policy.allowedPorts = nil
        policy.allowedAddresses = [try #require(AddressRange("127.0.0.1"))]
        #expect(try await Self.downloader(policy).error(at: silent).code == .cannotConnect)
        // One address is denied and the other does not answer, so the error is the network's.
        policy.deniedHosts = []
        #expect(try await Self.downloader(policy).error(at: url("http://localhost:1/")).code == .cannotConnect)
    }

    /// 127.0.0.1 stands for the public server, and all other addresses of the machine for forbidden targets.
    @Test(arguments: [
        ("http://127.0.0.2:PORT/b", "addressNotAllowed"), ("http://[::1]:PORT/b", "addressNotAllowed"),
        ("http://0:PORT/b", "addressNotAllowed"), ("//2130706434:PORT/b", "addressNotAllowed"),
        ("http://localhost:PORT/b", "hostNotAllowed"), ("http://user@127.0.0.1:PORT/b", "userInformationInURL"),
        ("http://127.0.0.1:1/b", "portNotAllowed"), ("http://a..b:PORT/b", "malformedHost"),
        ("file:///etc/passwd", "unsafeRedirect"),
    ])
    func `each redirect is checked`(location: String, code: String) async throws {
        let origin = try FaultyOrigin(["/b": .body([1])])
        origin.script("/a", .redirect(to: location.replacing("PORT", with: "\(origin.port)")))
        origin.script("/first", .redirect(to: "/a"))
        var policy = NetworkPolicy.publicInternet
        policy.allowedPorts = [origin.port]
        policy.allowedAddresses = [try #require(AddressRange("127.0.0.1"))]
        let error = try await Self.downloader(policy).error(at: origin.url("/first"))
        #expect(error.code.description == code)
        #expect(origin.requestCount(for: "/a") == 1)
        #expect(origin.requestCount(for: "/b") == 0)
        #expect(origin.connectionCount == 1)
    }

    @Test(arguments: [("127.0.0.0/8", true), ("127.0.0.1/32", true), ("127.0.0.2/32", false)])
    func `an exception permits the address that its host turns out to have`(range: String, isServed: Bool) async throws
    {
        let origin = try FaultyOrigin(["/a": .body([1]), "/c": .body([2])])
        origin.script("/b", .redirect(to: "http://127.0.0.1:\(origin.port)/a"))
        var policy = NetworkPolicy.publicInternet
        policy.exceptions = [
            .init(
                schemes: [.http],
                host: try #require(HostRule(exactly: "localhost")),
                ports: [origin.port],
                // Do not include the other address of the host.
                addresses: [try #require(AddressRange(range))]
            )
        ]
        let downloader = Self.downloader(policy)
        let text = "http://localhost:\(origin.port)"
        guard isServed else {
            #expect(try await downloader.error(at: url("\(text)/a")).code == .addressNotAllowed)
            #expect(origin.connectionCount == 0)
            return
        }
        #expect(try await downloader.body(at: url("\(text)/a")) == Data([1]))
        // The exception does not apply to the same socket under another name.
        #expect(try await downloader.error(at: url("\(text)/b")).code == .portNotAllowed)
        #expect(try await downloader.error(at: url("http://127.0.0.1:\(origin.port)/c")).code == .portNotAllowed)
        #expect(origin.requestCount(for: "/c") == 0)
    }

    @Test func `refusals are events, and are counted`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        origin.script("/b", .redirect(to: "http://10.0.0.1/"))
        var policy = NetworkPolicy.publicInternet
        policy.allowedPorts = [origin.port, 80]
        policy.allowedAddresses = [try #require(AddressRange("127.0.0.1"))]
        let downloader = Self.downloader(policy)
        var events = downloader.events().makeAsyncIterator()
        #expect(try await downloader.error(at: url("http://user@example.org/")).code == .userInformationInURL)
        let event = try #require(await events.next())
        guard case .refused(let error) = event.kind else {
            Issue.record("another event came: \(event)")
            return
        }
        #expect(error.code == .userInformationInURL)
        #expect(event.url.absoluteString == "http://example.org/")
        #expect(try await downloader.error(at: origin.url("/b")).code == .addressNotAllowed)
        #expect(try await downloader.body(at: origin.url("/a")) == Data([1]))
        let counters = await downloader.counters
        #expect(counters.refused == 2)
        #expect(counters.started == 2)
        #expect(counters.failed == 1)
    }

    @Test func `files and data can be refused`() async throws {
        let downloader = Self.downloader(.publicInternet)
        #expect(try await downloader.error(at: Fixtures.url("flower.jpg")).code == .schemeNotAllowed)
        #expect(try await downloader.error(at: url("data:,x")).code == .schemeNotAllowed)
    }

    @Test func `an address of no known family is refused, and a proxy is the program's choice`() throws {
        let target = try ResourceAddress("http://example.org/")
        var address = curl_sockaddr()
        address.family = AF_INET
        address.addr.sa_family = sa_family_t(AF_INET)
        address.addrlen = UInt32(MemoryLayout<sockaddr_in>.size)
        var check = ConnectionCheck()
        // The address is 0.0.0.0, because all bytes are zero.
        #expect(!check.admits(&address, policy: .publicInternet, target: target))
        #expect(check.denial?.rule?.name == "unspecified")
        #expect(check.admits(&address, policy: .unrestricted, target: target))
        var proxied = ConnectionCheck(leadsToProxy: true)
        #expect(proxied.admits(&address, policy: .publicInternet, target: target))
        address.addr.sa_family = sa_family_t(AF_PACKET)
        #expect(!check.admits(&address, policy: .publicInternet, target: target))
        address.family = AF_UNIX
        #expect(check.admits(&address, policy: .publicInternet, target: target))
    }

    private static func downloader(_ policy: NetworkPolicy) -> DownloadActor {
        var configuration = DownloadActor.Configuration()
        configuration.networkPolicy = policy
        return DownloadActor(configuration: configuration)
    }
}
