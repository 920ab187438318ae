// SPDX-License-Identifier: Apache-2.0

import Tintype

/// The networks in which sources may be, in addition to the public internet.
struct AllowedNetworks: Sendable {
    private var sets: [AddressSet] = []
    private var ranges: [AddressRange] = []

    /// Adds a network by its name or by its addresses; returns false for another text.
    mutating func insert(_ text: String) -> Bool {
        switch text {
        case "loopback":
            self.sets.append(.loopback)
            if let ipv6 = AddressRange("::1/128") { self.ranges.append(ipv6) }
        case "link-local":
            self.sets.append(.linkLocal)
        case "private":
            self.sets.append(.privateUse)
        default:
            guard let range = AddressRange(text) else { return false }
            self.ranges.append(range)
        }
        return true
    }

    /// Opens the networks, with all ports and names.
    ///
    /// The addresses of cloud metadata stay denied in networks that are given by name. Names of local networks become
    /// allowed, because the policy still checks the address of each connection.
    func open(in policy: inout NetworkPolicy) {
        guard !self.sets.isEmpty || !self.ranges.isEmpty else { return }
        policy.deniedAddresses.removeAll { self.sets.contains($0) }
        policy.allowedAddresses += self.ranges
        policy.deniedHosts = []
        policy.allowedPorts = nil
    }
}
