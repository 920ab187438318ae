// SPDX-License-Identifier: Apache-2.0

/// The owner of an origin, as far as its name tells.
///
/// Names below one domain, and the addresses of one IPv6 network, cost their owner nothing, so all of them count as
/// one. The start of a domain is a guess without the list of public suffixes. Owners that are mistaken for one share
/// the places that are not reserved for others.
enum Site {
    /// The site of an origin as ``ResourceAddress/origin`` has it.
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
        if let address = HostName.address(String(host)) { return self.name(of: address.unmapped) }
        return self.domain(of: host)
    }

    private static func name(of address: IPAddress) -> String {
        guard address.family == .v6 else { return address.description }
        return "\(IPAddress(ipv6: (address.value >> 64) << 64))/64"
    }

    /// Returns the last two labels, or three if the last but one is short, as `co` and `com` before a country are.
    private static func domain(of host: Substring) -> String {
        let labels = host.split(separator: ".")
        guard labels.count > 2 else { return labels.joined(separator: ".") }
        let isShort = labels[labels.count - 1].utf8.count == 2 && labels[labels.count - 2].utf8.count <= 3
        return labels.suffix(isShort ? 3 : 2).joined(separator: ".")
    }
}
