// SPDX-License-Identifier: Apache-2.0

/// IP addresses that are allowed or denied for one reason, with a name for messages.
public struct AddressSet: Sendable, Hashable {
    /// The kind of the addresses in the set, such as `loopback`; messages say "a loopback address".
    public let name: String
    /// The addresses in it.
    public let ranges: [AddressRange]

    /// Creates a set of addresses.
    ///
    /// ```swift
    /// var policy = NetworkPolicy.publicInternet
    /// policy.deniedAddresses.append(AddressSet(name: "our data centre", ranges: [AddressRange("203.0.113.0/24")!]))
    /// ```
    public init(name: String, ranges: [AddressRange]) {
        self.name = name
        self.ranges = ranges
    }

    /// Returns the range that contains `address`, or `nil`.
    ///
    /// ```swift
    /// let range = AddressSet.privateUse.range(of: IPAddress(ipv4: 0x0A00_0001))  // 10.0.0.0/8
    /// ```
    public func range(of address: IPAddress) -> AddressRange? {
        self.ranges.first { $0.contains(address) }
    }
}

// The ranges of the IANA registries of special-purpose addresses (RFC 6890), read in 2026.
extension AddressSet {
    /// This machine: `127.0.0.0/8` and `::1`.
    public static let loopback = AddressSet(
        name: "loopback",
        ranges: [AddressRange(127, prefixLength: 8), AddressRange(address: 1, prefixLength: 128)]
    )

    /// `0.0.0.0/8` and `::`, which Linux takes for this machine.
    public static let unspecified = AddressSet(
        name: "unspecified",
        ranges: [AddressRange(0, prefixLength: 8), AddressRange(address: 0, prefixLength: 128)]
    )

    /// One link: `169.254.0.0/16` and `fe80::/10` (RFC 3927, RFC 4291).
    public static let linkLocal = AddressSet(
        name: "link-local",
        ranges: [AddressRange(169, 254, prefixLength: 16), AddressRange(address: 0xFE80 << 112, prefixLength: 10)]
    )

    /// Private networks: `10.0.0.0/8`, `172.16.0.0/12` and `192.168.0.0/16` (RFC 1918).
    public static let privateUse = AddressSet(
        name: "private",
        ranges: [
            AddressRange(10, prefixLength: 8), AddressRange(172, 16, prefixLength: 12),
            AddressRange(192, 168, prefixLength: 16),
        ]
    )

    /// Private networks of IPv6: `fc00::/7` (RFC 4193), and `fec0::/10`, which they replaced.
    public static let uniqueLocal = AddressSet(
        name: "unique-local",
        ranges: [
            AddressRange(address: 0xFC00 << 112, prefixLength: 7),
            AddressRange(address: 0xFEC0 << 112, prefixLength: 10),
        ]
    )

    /// Between a provider and its customers: `100.64.0.0/10` (RFC 6598).
    public static let carrierGradeNAT = AddressSet(
        name: "carrier-grade NAT",
        ranges: [AddressRange(100, 64, prefixLength: 10)]
    )

    /// Groups: `224.0.0.0/4` and `ff00::/8`.
    public static let multicast = AddressSet(
        name: "multicast",
        ranges: [AddressRange(224, prefixLength: 4), AddressRange(address: 0xFF00 << 112, prefixLength: 8)]
    )

    /// All machines of a link: `255.255.255.255`.
    public static let broadcast = AddressSet(
        name: "broadcast",
        ranges: [AddressRange(255, 255, 255, 255, prefixLength: 32)]
    )

    /// Where clouds answer their own machines with credentials, each with the address of a machine.
    ///
    /// Most are link-local or private, too; `168.63.129.16` (Azure) and `192.0.0.192` (Oracle) are neither.
    public static let cloudMetadata = AddressSet(
        name: "cloud metadata",
        ranges: [
            // Amazon, Google, Azure and most others; containers and pods of Amazon.
            AddressRange(169, 254, 169, 254, prefixLength: 32), AddressRange(169, 254, 170, 2, prefixLength: 32),
            AddressRange(169, 254, 170, 23, prefixLength: 32),
            // Amazon and Google by IPv6; OpenStack and Oracle.
            AddressRange(address: 0xFD00_0EC2 << 96 | 0x254, prefixLength: 128),
            AddressRange(address: 0xFD00_0EC2 << 96 | 0x23, prefixLength: 128),
            AddressRange(address: 0xFD20_00CE << 96 | 0x254, prefixLength: 128),
            AddressRange(address: 0xFE80 << 112 | 0xA9FE_A9FE, prefixLength: 128),
            AddressRange(address: 0xFD00_00C1 << 96 | 0xA9FE_A9FE, prefixLength: 128),
            // Alibaba, Azure, Oracle.
            AddressRange(100, 100, 100, 200, prefixLength: 32), AddressRange(168, 63, 129, 16, prefixLength: 32),
            AddressRange(192, 0, 0, 192, prefixLength: 32),
        ]
    )

    /// For documents and measurements: `192.0.2.0/24`, `198.51.100.0/24`, `203.0.113.0/24`, `198.18.0.0/15`,
    /// `2001:db8::/32`, `3fff::/20`.
    public static let documentation = AddressSet(
        name: "documentation or benchmark",
        ranges: [
            AddressRange(192, 0, 2, prefixLength: 24), AddressRange(198, 51, 100, prefixLength: 24),
            AddressRange(203, 0, 113, prefixLength: 24), AddressRange(198, 18, prefixLength: 15),
            AddressRange(address: 0x2001_0DB8 << 96, prefixLength: 32),
            AddressRange(address: 0x3FFF << 112, prefixLength: 20),
        ]
    )

    /// The addresses that are not assigned, or are assigned to protocols: neither global unicast nor in another set.
    ///
    /// In IPv6 these are all addresses outside of `2000::/3`, except for `64:ff9b::/96`, whose addresses are judged by
    /// the IPv4 address in them.
    public static let reserved = AddressSet(
        name: "reserved",
        ranges: [
            AddressRange(192, 0, 0, prefixLength: 24), AddressRange(192, 88, 99, prefixLength: 24),
            AddressRange(240, prefixLength: 4),
            AddressRange(first: IPAddress(ipv6: 0), last: IPAddress(ipv6: 0x64_FF9B << 96 - 1)),
            AddressRange(
                first: IPAddress(ipv6: 0x64_FF9B << 96 + 1 << 32),
                last: IPAddress(ipv6: 0x2000 << 112 - 1)
            ),
            AddressRange(address: 0x2001 << 112, prefixLength: 23),
            AddressRange(first: IPAddress(ipv6: 0x4000 << 112), last: IPAddress(ipv6: .max)),
        ]
    )

    /// Every set that no public host is in, the telling names first.
    static let notPublic: [AddressSet] = [
        .cloudMetadata, .loopback, .unspecified, .linkLocal, .privateUse, .uniqueLocal, .carrierGradeNAT, .broadcast,
        .multicast, .documentation, .reserved,
    ]
}
