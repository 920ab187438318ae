// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeDownloading
import TintypeTestSupport

/// The cases of the probe that need no corpus.
struct Attacks {
    static let publicHosts = [NameServer.publicAddress, "8.8.8.8", "[2606:2800:220:1::1]", "[64:ff9b::808:808]"]
    /// The hosts that answer in the namespace, and that the policy must deny.
    private static let innerHosts = [
        "127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "169.254.170.2",
        "100.64.0.1",
        "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.2.1", "198.18.0.1", "203.0.113.1", "[::1]",
        "[fd00::1]", "[fd00:ec2::254]", "[fec0::1]", "[2001:db8::1]", "[::ffff:10.0.0.1]", "[::10.0.0.1]",
        "[::ffff:0:10.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]",
        "[2606:2800:220:1:0:5efe:10.0.0.1]",
    ]

    let origin: EveryAddressOrigin
    let nameServer: NameServer

    func run() async {
        await self.showThatAddressesAnswer()
        await self.guarded {
            await self.fetchPublicHosts()
            await self.fetchInnerHosts()
            await self.tryTricks()
            await self.tryNames()
            await self.rebind()
            await self.mixAddresses()
            await self.tryForgeries()
        }
        for text in URLForgery.all { await HostComparison(attacks: self).run(text) }
    }

    /// Runs `body`, which may only reach public addresses, and reports the other addresses that it reached.
    func guarded(_ body: () async throws -> Void) async rethrows {
        _ = self.origin.takeAddresses()
        try await body()
        // The server accepts connections in order, so after this one it has accepted all earlier ones.
        let sentinel = "127.7.7.7"
        _ = await Self.outcome(of: "http://\(sentinel)/", policy: .unrestricted)
        let isPublic = Set(Self.publicHosts.map { $0.filter { $0 != "[" && $0 != "]" } })
        let reached = self.origin.takeAddresses().filter { !isPublic.contains($0) }
        Self.report("reached", "inner addresses", expected: sentinel, actual: reached.joined(separator: " "))
    }

    /// Shows that a refusal is not due to a network without answers.
    private func showThatAddressesAnswer() async {
        for host in Self.innerHosts + Self.publicHosts {
            let outcome = await Self.outcome(of: "http://\(host)/", policy: .unrestricted)
            Self.report("control", host, expected: "200", actual: outcome)
        }
        let host = "[fe80::1%25lo]"
        Self.report(
            "control",
            host,
            expected: "200",
            actual: await Self.outcome(of: "http://\(host)/", policy: .unrestricted)
        )
    }

    private func fetchPublicHosts() async {
        for host in Self.publicHosts + ["example.org"] {
            Self.report("public", host, expected: "200", actual: await Self.outcome(of: "http://\(host)/"))
        }
        let name = "http://b\u{FC}cher.example/"
        Self.report("public", name, expected: "200", actual: await self.redirected(to: name))
        var policy = NetworkPolicy.publicInternet
        policy.deniedHosts = [HostRule(domain: "xn--bcher-kva.example")].compactMap(\.self)
        let outcome = await self.redirected(to: name, policy: policy)
        Self.report("denied name", name, expected: "hostNotAllowed", actual: outcome)
    }

    private func fetchInnerHosts() async {
        for host in Self.innerHosts + ["[fe80::1%25lo]"] {
            let outcome = await Self.outcome(of: "http://\(host)/")
            Self.report("literal", host, expected: "addressNotAllowed", actual: outcome)
        }
    }

    private func tryTricks() async {
        for trick in URLTrick.all {
            // A text that is not a URL cannot be requested, but a server can still redirect to it.
            if URL(string: trick.text) != nil {
                let outcome = await Self.outcome(of: trick.text)
                Self.report("direct", trick.text, expected: "refused", actual: Self.refusal(outcome))
            }
            // These locations are relative to the public host and lead back to it.
            guard trick.code != "invalidURL" || trick.text.hasPrefix("//") else { continue }
            let outcome = await self.redirected(to: trick.text)
            Self.report("redirect", trick.text, expected: "refused", actual: Self.refusal(outcome))
        }
    }

    /// Tries every inner address again through a name.
    private func tryNames() async {
        for (index, host) in Self.innerHosts.enumerated() {
            let address = host.filter { $0 != "[" && $0 != "]" }
            self.nameServer.setAnswers([[address]], for: "n\(index).example")
            let outcome = await Self.outcome(of: "http://n\(index).example/")
            Self.report("name", address, expected: "addressNotAllowed", actual: outcome)
            let hop = await self.redirected(to: "http://n\(index).example/")
            Self.report("name by redirect", address, expected: "addressNotAllowed", actual: hop)
        }
    }

    /// Tries a name whose address is public at the first look-up only.
    private func rebind() async {
        let inner = ["169.254.169.254", "127.0.0.1", "10.0.0.1", "fd00::1", "::ffff:7f00:1", "64:ff9b::7f00:1"]
        for address in inner {
            self.nameServer.setAnswers([[NameServer.publicAddress], [address]], for: "rebind.example")
            // A downloader caches its look-ups, so each look-up needs a new downloader.
            let first = await Self.outcome(of: "http://rebind.example/")
            let second = await Self.outcome(of: "http://rebind.example/")
            Self.report("rebinding", address, expected: "200 addressNotAllowed", actual: "\(first) \(second)")
            // libcurl caches addresses by name and port, so the redirect to another port needs a new look-up.
            self.nameServer.setAnswers([[NameServer.publicAddress], [address]], for: "hop.example")
            self.origin.setLocation("https://hop.example/")
            let hop = await Self.outcome(of: "http://hop.example/redirect")
            Self.report("rebinding by redirect", address, expected: "addressNotAllowed", actual: hop)
        }
    }

    private func mixAddresses() async {
        let cases = [
            (["10.0.0.1", NameServer.publicAddress], "200"), ([NameServer.publicAddress, "10.0.0.1"], "200"),
            (["fd00::1", NameServer.publicAddress], "200"), (["10.0.0.1", "2606:2800:220:1::1"], "200"),
            (["10.0.0.1", "fd00::1", "127.0.0.1"], "addressNotAllowed"),
            (["10.0.0.1", "10.0.0.2"], "addressNotAllowed"),
        ]
        for (index, (addresses, expected)) in cases.enumerated() {
            self.nameServer.setAnswers([addresses], for: "m\(index).example")
            let outcome = await Self.outcome(of: "http://m\(index).example/")
            Self.report("several addresses", addresses.joined(separator: " "), expected: expected, actual: outcome)
        }
    }

    /// Relies on the report of ``guarded(_:)``, because some of the URLs are public hosts with an odd path.
    private func tryForgeries() async {
        for text in URLForgery.all {
            _ = await Self.outcome(of: text)
            _ = await self.redirected(to: text)
        }
    }

    /// Returns the outcome of a request to a public host that redirects to `location`.
    func redirected(to location: String, policy: NetworkPolicy = .publicInternet) async -> String {
        self.origin.setLocation(location)
        return await Self.outcome(of: "http://\(NameServer.publicAddress)/redirect", policy: policy)
    }

    /// Returns the status, or the code of the error.
    static func outcome(of text: String, policy: NetworkPolicy = .publicInternet) async -> String {
        guard let url = URL(string: text) else { return "no URL" }
        var configuration = DownloadActor.Configuration()
        configuration.networkPolicy = policy
        configuration.connectTimeout = .seconds(30)
        configuration.timeout = .seconds(30)
        let downloader = DownloadActor(configuration: configuration)
        do {
            return "\(try await downloader.response(for: DownloadRequest(url: url)).status ?? 0)"
        } catch let error as DownloadError {
            return error.code.description
        } catch {
            return "\(error)"
        }
    }

    /// Returns "refused" for errors before a connection, and the outcome itself for all others.
    static func refusal(_ outcome: String) -> String {
        let refusals: Set = [
            "addressNotAllowed", "hostNotAllowed", "portNotAllowed", "schemeNotAllowed", "malformedHost",
            "userInformationInURL", "unsupportedScheme", "invalidURL", "unsafeRedirect", "invalidResponse", "no URL",
        ]
        return refusals.contains(outcome) ? "refused" : outcome
    }

    static func report(_ group: String, _ name: String, expected: String, actual: String) {
        let escaped = name.unicodeScalars.map { $0.value < 0x20 ? "\\u{\($0.value)}" : String($0) }.joined()
        print("\(group)\t\(escaped)\t\(expected)\t\(actual)")
    }
}
