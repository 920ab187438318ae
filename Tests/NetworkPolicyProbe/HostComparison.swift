// SPDX-License-Identifier: Apache-2.0

import TintypeDownloading

/// A check that the policy checks the same host to which the client connects.
///
/// The probe observes the host at the other end, by the name that was looked up or else the address of the connection.
/// Then a policy that denies only this host must stop the request, and one that allows only this host must not.
struct HostComparison {
    let attacks: Attacks

    func run(_ input: String) async {
        // A line break ends a Location.
        guard !input.unicodeScalars.contains(where: { $0 == "\n" || $0 == "\r" }),
            let host = await self.host(reachedBy: input, policy: .unrestricted)
        else { return }
        // libcurl resolves localhost without a look-up, and Linux treats 0.0.0.0 and :: as this machine.
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

    /// Returns the host that a redirect to `location` reaches, or `nil` if it reaches none or the same one.
    private func host(reachedBy location: String, policy: NetworkPolicy) async -> String? {
        _ = self.attacks.origin.takeAddresses()
        _ = self.attacks.nameServer.takeNames()
        _ = await self.attacks.redirected(to: location, policy: policy)
        let names = self.attacks.nameServer.takeNames()
        let addresses = self.attacks.origin.takeAddresses().filter { $0 != NameServer.publicAddress }
        return names.sorted().first ?? addresses.first
    }
}
