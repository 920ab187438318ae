// SPDX-License-Identifier: Apache-2.0

// An IPv6 address can lead to an IPv4 one: by the kernel, a translator or a tunnel. A rule about
// 127.0.0.0/8 that does not know this is got round by writing the address differently.

extension IPAddress {
    private static let mapped: UInt128 = 0xFFFF << 32
    private static let wellKnownTranslation = AddressRange(address: 0x64_FF9B << 96, prefixLength: 96)
    private static let localTranslation = AddressRange(address: 0x64_FF9B_0001 << 80, prefixLength: 48)

    /// The IPv4 address in an IPv4-mapped one, `::ffff:a.b.c.d` (RFC 4291, 2.5.5.2); otherwise the address itself.
    ///
    /// Linux connects to a mapped address by IPv4, so both are the same destination.
    var unmapped: IPAddress {
        guard self.family == .v6, self.value >> 32 == Self.mapped >> 32 else { return self }
        return Self.ipv4(self.value)
    }

    /// Returns the other addresses at which packets to this one may end.
    ///
    /// For an IPv6 address that is the IPv4 address in it. If the form does not tell which bits hold it, the result
    /// contains all possible ones. `translationPrefixes` are the NAT64 prefixes of the network in addition to the
    /// registered ones.
    func destinations(translationPrefixes: [AddressRange]) -> [IPAddress] {
        // Linux connects to this machine for `0.0.0.0` and `::`.
        if self.unmapped == Self.ipv4(0) { return [Self.ipv4(0x7F00_0001)] }
        if self == IPAddress(ipv6: 0) { return [IPAddress(ipv6: 1)] }
        guard self.family == .v6 else { return [] }
        var addresses = self.transitionAddresses
        // ISATAP (RFC 5214, 6.1): an interface identifier of [02]00:5efe and the address.
        if (self.value >> 32) & 0xFDFF_FFFF == 0x5EFE { addresses.append(Self.ipv4(self.value)) }
        if Self.wellKnownTranslation.contains(self) { addresses.append(Self.ipv4(self.value)) }
        // RFC 8215: local translators choose the length of their prefix.
        if Self.localTranslation.contains(self) {
            addresses += [48, 56, 64, 96].map { self.translatedIPv4(prefixLength: $0) }
        }
        for prefix in translationPrefixes where prefix.contains(self) {
            addresses += [prefix.prefixLength].compactMap(\.self).map { self.translatedIPv4(prefixLength: $0) }
        }
        return addresses
    }

    /// The embedded addresses of the forms that the first bits identify.
    private var transitionAddresses: [IPAddress] {
        let low = Self.ipv4(self.value)
        // IPv4-compatible (RFC 4291, 2.5.5.1), except for `::` and `::1`.
        if self.value >> 32 == 0 { return self.value > 1 ? [low] : [] }
        // IPv4-translated (RFC 2765, 2.1), `::ffff:0:a.b.c.d`.
        if self.value >> 32 == 0xFFFF_0000 { return [low] }
        // 6to4 (RFC 3056, 2).
        if self.value >> 112 == 0x2002 { return [Self.ipv4(self.value >> 80)] }
        // Teredo (RFC 4380, 4): the server, and the client with every bit inverted.
        if self.value >> 96 == 0x2001_0000 { return [Self.ipv4(self.value >> 64), Self.ipv4(~self.value)] }
        return []
    }

    /// The IPv4 address behind a prefix (RFC 6052, 2.2).
    private func translatedIPv4(prefixLength: Int) -> IPAddress {
        guard prefixLength < 96 else { return Self.ipv4(self.value) }
        // Bits 64 to 71 are no part of it.
        let before = (self.value >> 64) << 56
        let after = self.value & (1 << 56 - 1)
        return Self.ipv4((before | after) >> (88 - prefixLength))
    }

    private static func ipv4(_ value: UInt128) -> IPAddress {
        IPAddress(ipv4: UInt32(truncatingIfNeeded: value))
    }
}
