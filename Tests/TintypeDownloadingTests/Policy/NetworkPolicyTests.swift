// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

@Suite(.computing) struct NetworkPolicyTests {
    @Test(arguments: URLTrick.all)
    func `no trick leads out of the public internet`(trick: URLTrick) {
        let error = #expect(throws: DownloadError.self) {
            try NetworkPolicy.publicInternet.check(ResourceAddress(trick.text))
        }
        #expect(error?.code.description == trick.code, "\(error?.message ?? "")")
    }

    @Test func `there are tricks enough`() {
        #expect(Set(URLTrick.all.map(\.text)).count == URLTrick.all.count)
        #expect(URLTrick.all.count >= 80)
    }

    @Test(arguments: [
        "http://example.org/", "https://example.org:443/a?b#c@127.0.0.1", "http://EXAMPLE.org.:80/", "http://8.8.8.8/",
        "http://134744072/", "http://[2606:4700::1111]/", "http://[64:ff9b::8.8.8.8]/", "http://[2002:808:808::1]/",
        "http://[::ffff:8.8.8.8]/", "http://xn--bcher-kva.example/", "http://a_b.example.org/", "http://badlocalhost/",
        "http://localhost.example.org/", "http://127.0.0.1.example.org/", "http://172.15.255.255/",
        "http://172.32.0.0/", "http://100.63.255.255/", "http://100.128.0.0/", "http://11.0.0.0/",
        "http://9.255.255.255/",
        "http://[2606:2800:220:1:0:5efe:8.8.8.8]/", "http://223.255.255.255/", "http://%65xample.org/",
    ])
    func `public web servers are allowed`(text: String) throws {
        try NetworkPolicy.publicInternet.check(ResourceAddress(text))
    }

    @Test(arguments: URLTrick.all.filter { $0.code != "invalidURL" && $0.code != "unsupportedScheme" })
    func `nothing is checked without restrictions`(trick: URLTrick) throws {
        try NetworkPolicy.unrestricted.check(ResourceAddress(trick.text))
    }

    @Test(arguments: [
        ("http://example.org/", true), ("http://EXAMPLE.ORG./", true), ("http://a.example.org/", false),
        ("http://example.com/", true), ("http://a.b.example.com/", true), ("http://badexample.com/", false),
        ("http://com/", false), ("http://secret.example.com/", false), ("http://a.secret.example.com/", true),
        ("http://8.8.8.8/", true), ("http://134744072/", true), ("http://[::ffff:8.8.8.8]/", true),
        ("http://8.8.4.4/", false), ("http://[2606:4700:0::1111]/", true), ("http://xn--bcher-kva.example/", true),
    ])
    func `hosts are allowed by name or domain`(text: String, isAllowed: Bool) throws {
        var policy = NetworkPolicy()
        policy.allowedHosts = [
            HostRule(exactly: "Example.org."), HostRule(domain: "example.COM"), HostRule(exactly: "8.8.8.8"),
            HostRule(exactly: "2606:4700::1111"), HostRule(exactly: "xn--bcher-kva.example"),
        ].compactMap(\.self)
        policy.deniedHosts = [HostRule(exactly: "secret.example.com")].compactMap(\.self)
        let error = Self.error(of: text, policy: policy)
        #expect(error?.code == (isAllowed ? nil : .hostNotAllowed))
    }

    @Test(arguments: [
        "", ".", "a..b", "a b", "*.example.org", ".example.org", "bücher.example", "a/b", "1.2.3.4.5", "[::1]",
    ])
    func `a rule on what is no host is refused`(name: String) {
        #expect(HostRule(exactly: name) == nil)
        #expect(HostRule(domain: name) == nil)
    }

    @Test func `a domain is no address`() {
        #expect(HostRule(domain: "10.0.0.1") == nil)
        #expect(HostRule(domain: "::1") == nil)
    }

    @Test func `an allowed address beats a denied one`() throws {
        var policy = NetworkPolicy.publicInternet
        policy.allowedAddresses = [try #require(AddressRange("10.1.0.0/16"))]
        #expect(Self.error(of: "http://10.1.2.3/", policy: policy) == nil)
        #expect(Self.error(of: "http://[::ffff:10.1.2.3]/", policy: policy) == nil)
        #expect(Self.error(of: "http://[64:ff9b::10.1.2.3]/", policy: policy) == nil)
        #expect(Self.error(of: "http://10.2.0.0/", policy: policy)?.code == .addressNotAllowed)
    }

    @Test(arguments: [
        ("2620:1::/32", "2620:1:a09:807::"),
        ("2620:1:ab00::/40", "2620:1:ab0a:908:7::"),
        ("2620:1:abcd::/48", "2620:1:abcd:a09:8:700::"),
        ("2620:1:abcd:ef00::/56", "2620:1:abcd:ef0a:9:807::"),
        ("2620:1:abcd:ef01::/64", "2620:1:abcd:ef01:a:908:700:0"),
        ("2620:1:abcd:ef01:0:1::/96", "2620:1:abcd:ef01:0:1:a09:807"),
    ])
    func `the translators of a network are known by their prefix`(prefix: String, address: String) throws {
        let range = try #require(AddressRange(prefix))
        var policy = NetworkPolicy.publicInternet
        #expect(Self.error(of: "http://[\(address)]/", policy: policy) == nil)
        policy.translationPrefixes = [range]
        let error = try #require(Self.error(of: "http://[\(address)]/", policy: policy))
        #expect(error.code == .addressNotAllowed)
        #expect(error.message.contains("leads to 10.9.8.7"))
    }

    @Test func `a denial names the address and its range`() throws {
        let error = try #require(Self.error(of: "http://[2002:a9fe:a9fe::1]/a.jpg", policy: .publicInternet))
        #expect(error.message.contains("2002:a9fe:a9fe::1 leads to 169.254.169.254"))
        #expect(error.message.contains("cloud metadata range 169.254.169.254/32"))
        #expect(error.url?.path == "/a.jpg")
    }

    @Test(arguments: ["http://example.org:8080/", "http://localhost/", "http://10.0.0.1/"])
    func `a denial says how to allow one place, and how to allow all`(url: String) throws {
        let error = try #require(Self.error(of: url, policy: .publicInternet))
        #expect(error.message.contains(" in exceptions, or "), "\(error.message)")
    }

    @Test func `a denial of a data URL does not show it`() throws {
        let error = try #require(Self.error(of: "data:,x", policy: .publicInternet))
        #expect(
            error.message
                == "The network policy does not allow data URLs; add the scheme to allowedSchemes if it is meant."
        )
    }

    @Test(arguments: ["0.0.0.0", "0", "[::]", "[::ffff:0.0.0.0]"])
    func `the unspecified address is this machine`(host: String) throws {
        var policy = NetworkPolicy()
        policy.deniedAddresses = [.loopback]
        let error = try #require(Self.error(of: "http://\(host)/", policy: policy))
        #expect(error.code == .addressNotAllowed)
        #expect(error.message.contains("loopback"))
    }

    @Test func `credentials are not repeated in the message`() throws {
        let error = try #require(Self.error(of: "http://user:s3cret@example.org/", policy: .publicInternet))
        #expect(!error.message.contains("s3cret"))
        #expect(error.url?.absoluteString.contains("s3cret") == false)
    }

    @Test func `schemes and ports can be chosen`() throws {
        var policy = NetworkPolicy()
        policy.allowedSchemes = [.https, .file]
        policy.allowedPorts = [8443]
        #expect(Self.error(of: "https://example.org:8443/", policy: policy) == nil)
        #expect(Self.error(of: "file:///etc/passwd", policy: policy) == nil)
        #expect(Self.error(of: "https://example.org/", policy: policy)?.code == .portNotAllowed)
        #expect(Self.error(of: "http://example.org:8443/", policy: policy)?.code == .schemeNotAllowed)
        #expect(Self.error(of: "data:,x", policy: policy)?.code == .schemeNotAllowed)
    }

    /// Returns a policy for the public internet and for `http://assets.internal:9000` at addresses in 10.0.0.0/8.
    private static func withAnException() throws -> NetworkPolicy {
        var policy = NetworkPolicy.publicInternet
        policy.exceptions = [
            .init(
                schemes: [.http],
                host: try #require(HostRule(exactly: "assets.internal")),
                ports: [9_000],
                addresses: [try #require(AddressRange("10.0.0.0/8"))]
            )
        ]
        return policy
    }

    @Test(arguments: URLTrick.all)
    func `an exception lets no trick through`(trick: URLTrick) throws {
        let policy = try Self.withAnException()
        #expect(Self.error(of: trick.text, policy: policy)?.code.description == trick.code)
    }

    @Test(
        arguments: [
            ("http://assets.internal:9000/a.jpg", nil), ("http://ASSETS.internal.:9000/", nil),
            ("https://assets.internal:9000/", "portNotAllowed"), ("http://assets.internal/", "hostNotAllowed"),
            ("http://assets.internal:9001/", "portNotAllowed"), ("http://b.assets.internal:9000/", "portNotAllowed"),
            ("http://internal:9000/", "portNotAllowed"), ("http://10.0.0.1:9000/", "portNotAllowed"),
            ("http://10.0.0.1/", "addressNotAllowed"), ("http://example.org:9000/", "portNotAllowed"),
            ("http://user@assets.internal:9000/", "userInformationInURL"), ("file:///etc/passwd", "schemeNotAllowed"),
            ("http://example.org/", nil), ("http://assets.internal:9000@example.org:9000/", "userInformationInURL"),
        ] as [(String, String?)]
    )
    func `an exception opens what all of its parts fit, and nothing else`(text: String, code: String?) throws {
        let policy = try Self.withAnException()
        #expect(Self.error(of: text, policy: policy)?.code.description == code)
    }

    @Test(arguments: [
        ("http://assets.internal:9000/", "10.1.2.3", true), ("http://assets.internal:9000/", "192.168.0.1", false),
        ("http://assets.internal:9000/", "8.8.8.8", false), ("http://assets.internal:9000/", "169.254.169.254", false),
        ("http://assets.internal:9000/", "64:ff9b::a01:203", false), ("http://example.org/", "10.1.2.3", false),
        ("http://example.org/", "8.8.8.8", true),
    ])
    func `an exception leads to its addresses alone`(text: String, address: String, isAllowed: Bool) throws {
        let policy = try Self.withAnException()
        let permission = policy.permission(for: try ResourceAddress(text))
        let denial = policy.denial(of: try #require(IPAddress(address)), under: permission)
        #expect((denial == nil) == isAllowed)
    }

    @Test func `exceptions for one place add up`() throws {
        var policy = try Self.withAnException()
        var other = policy.exceptions[0]
        other.addresses = [try #require(AddressRange("192.168.0.0/16"))]
        policy.exceptions.append(other)
        let permission = policy.permission(for: try ResourceAddress("http://assets.internal:9000/"))
        for (address, isAllowed) in [("10.0.0.1", true), ("192.168.0.1", true), ("172.16.0.1", false)] {
            let denial = policy.denial(of: try #require(IPAddress(address)), under: permission)
            #expect((denial == nil) == isAllowed)
        }
    }

    @Test func `an exception can open a scheme, or add addresses to what is allowed`() throws {
        var policy = NetworkPolicy.publicInternet
        policy.allowedSchemes = [.https]
        let host = try #require(HostRule(domain: "example.org"))
        let inside = try #require(AddressRange("10.0.0.0/8"))
        policy.exceptions = [
            .init(schemes: [.http], host: host, ports: [80]),
            .init(schemes: [.https], host: host, ports: [443], addresses: [inside]),
        ]
        #expect(Self.error(of: "http://a.example.org/", policy: policy) == nil)
        #expect(Self.error(of: "http://example.com/", policy: policy)?.code == .schemeNotAllowed)
        let permission = policy.permission(for: try ResourceAddress("https://example.org/"))
        for (address, isAllowed) in [("10.0.0.1", true), ("8.8.8.8", true), ("192.168.0.1", false)] {
            let denial = policy.denial(of: try #require(IPAddress(address)), under: permission)
            #expect((denial == nil) == isAllowed)
        }
    }

    private static func error(of text: String, policy: NetworkPolicy) -> DownloadError? {
        do throws(DownloadError) {
            try policy.check(ResourceAddress(text))
            return nil
        } catch {
            return error
        }
    }
}
