import TintypeDownloading

/// Shows that the host that is checked is the host that is connected to.
///
/// Where a URL leads is seen at the other end: which name was looked up, else which address was
/// connected to. Then a policy that denies just this host must stop it, and one that allows only it must not.
struct HostComparison {
    let attacks: Attacks

    func run(_ input: String) async {
        // Lines end a Location.
        guard !input.unicodeScalars.contains(where: { $0 == "\n" || $0 == "\r" }),
            let host = await self.host(reachedBy: input, policy: .unrestricted)
        else { return }
        // libcurl knows the addresses of localhost without asking, and Linux takes 0.0.0.0 and :: for this machine.
        let loopback = host == "127.0.0.1" ? "0.0.0.0" : host == "::1" ? "::" : host
        let rules = [HostRule(exactly: host), HostRule(exactly: loopback), HostRule(domain: "localhost")].compactMap(
            \.self
        )
        var denying = NetworkPolicy()
        denying.deniedHosts = rules
        let reached = await self.host(reachedBy: input, policy: denying)
        Attacks.report("denied host", "\(input) is at \(host)", expected: "-", actual: reached ?? "-")
        var allowing = NetworkPolicy()
        allowing.allowedHosts = rules + [HostRule(exactly: NameServer.publicAddress)].compactMap(\.self)
        let outcome = await self.attacks.redirected(to: input, policy: allowing)
        let actual = outcome == "hostNotAllowed" ? outcome : "allowed"
        Attacks.report("allowed host", "\(input) is at \(host)", expected: "allowed", actual: actual)
    }

    /// The host that a redirect to `location` leads to, or `nil` where it leads nowhere, or back.
    private func host(reachedBy location: String, policy: NetworkPolicy) async -> String? {
        _ = self.attacks.origin.takeAddresses()
        _ = self.attacks.nameServer.takeNames()
        _ = await self.attacks.redirected(to: location, policy: policy)
        let names = self.attacks.nameServer.takeNames()
        let addresses = self.attacks.origin.takeAddresses().filter { $0 != NameServer.publicAddress }
        return names.sorted().first ?? addresses.first
    }
}
