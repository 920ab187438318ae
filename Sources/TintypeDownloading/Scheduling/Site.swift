// SPDX-License-Identifier: Apache-2.0

/// The owner of an origin, as far as the origin's name shows it.
///
/// More names below a domain, and more addresses of an IPv6 network, cost their owner nothing, so all of them count as
/// one site. Without the list of public suffixes, the start of a domain is a guess. Owners that are mistaken for one
/// share the places that are not reserved for others.
package enum Site {
    /// Returns the site of an origin in the form of ``ResourceAddress/origin``.
    static func name(ofOrigin origin: String) -> String {
        var host = origin[...]
        if let slashes = host.utf8.firstIndex(of: UInt8(ascii: "/")) {
            host = host[slashes...].drop { $0 == "/" }
        }
        // The colons of an IPv6 address are inside its brackets.
        let bracket = host.utf8.lastIndex(of: UInt8(ascii: "]"))
        if let colon = host.utf8.lastIndex(of: UInt8(ascii: ":")), bracket.map({ $0 < colon }) ?? true {
            host = host[..<colon]
        }
        host = host.drop { $0 == "[" }
        if host.last == "]" { host.removeLast() }
        return self.name(ofHost: String(host))
    }

    /// Returns the site of a host, whose address may be an IPv6 address without brackets.
    package static func name(ofHost host: String) -> String {
        if let address = HostName.address(host) { return self.name(of: address.unmapped) }
        return self.domain(of: host)
    }

    private static func name(of address: IPAddress) -> String {
        guard address.family == .v6 else { return address.description }
        return "\(IPAddress(ipv6: (address.value >> 64) << 64))/64"
    }

    /// Returns the last two labels, or three if the second-last is short, such as `co` or `com` before a country.
    private static func domain(of host: String) -> String {
        let labels = host.split(separator: ".")
        guard labels.count > 2 else { return labels.joined(separator: ".") }
        let isShort = labels[labels.count - 1].utf8.count == 2 && labels[labels.count - 2].utf8.count <= 3
        return labels.suffix(isShort ? 3 : 2).joined(separator: ".")
    }
}
