// SPDX-License-Identifier: Apache-2.0

/// The rules for the hosts and addresses that a downloader may reach.
///
/// Clients of a server that loads their URLs must not reach its own services through it. The downloader checks schemes,
/// user information, ports and hosts before it sends a request, and again at each redirect. It checks the address when
/// it connects, so a name that changes its address between two look-ups gains nothing. If a host has several addresses,
/// the downloader uses an allowed one. If all are denied, the error is ``TintypeErrorCode/addressNotAllowed``.
///
/// A policy belongs to a downloader or to one request. A request reuses an open connection only if its own policy
/// allows the address of that connection.
///
/// A cached image needs no fetch, so the policy does not apply to it.
///
/// If the program names a proxy, the connection leads to the proxy, and only the proxy knows the address of the host.
/// The downloader then checks hosts that are written as addresses, and names only as names. The proxy itself must
/// protect its network from clients. The same applies to Unix-domain sockets. A proxy from the environment is checked
/// like any other address.
public struct NetworkPolicy: Sendable, Hashable {
    /// The schemes of URLs that can be loaded.
    public enum Scheme: String, Sendable, Hashable, CaseIterable {
        /// HTTP without encryption.
        case http
        /// HTTP over TLS.
        case https
        /// Files of this machine.
        case file
        /// Bytes in the URL itself.
        case data
    }

    /// The schemes that are allowed.
    public var allowedSchemes = Set(Scheme.allCases)
    /// The ports that are allowed, or `nil` for all.
    public var allowedPorts: Set<Int>?
    /// The only hosts that are allowed, or `nil` for all.
    ///
    /// The downloader still checks their addresses.
    public var allowedHosts: [HostRule]?
    /// The hosts that are denied, even if ``allowedHosts`` contains them.
    public var deniedHosts: [HostRule] = []
    /// The addresses that are denied.
    ///
    /// A denied IPv4 address includes the IPv6 addresses that lead to it: IPv4-mapped, -compatible and -translated
    /// addresses, NAT64, 6to4, Teredo and ISATAP. The loopback addresses include `0.0.0.0` and `::`.
    public var deniedAddresses: [AddressSet] = []
    /// The addresses that are allowed, even if ``deniedAddresses`` contains them.
    public var allowedAddresses: [AddressRange] = []
    /// The NAT64 prefixes of the network beside the registered `64:ff9b::/96` and `64:ff9b:1::/48`.
    ///
    /// Prefixes of 32, 40, 48, 56, 64 and 96 bits are in use (RFC 6052).
    public var translationPrefixes: [AddressRange] = []
    /// The exceptions to the lists above, such as one inner server; see ``Exception``.
    public var exceptions: [Exception] = []
    /// Whether a URL may contain a user and a password.
    ///
    /// They make `http://example.org@127.0.0.1/` look like something else; a request has fields of its own for
    /// credentials.
    public var allowsUserInformation = true

    /// A place that is allowed although the lists of a policy deny it.
    ///
    /// All of its parts must match a request together, so it opens nothing else. An exception for `http` to
    /// `assets.internal` on port 9000 within `10.0.0.0/8` allows neither `https`, nor another port, nor another name
    /// with the same address.
    ///
    /// ```swift
    /// let (assets, inside) = (HostRule(exactly: "assets.internal")!, AddressRange("10.0.0.0/8")!)
    /// var policy = NetworkPolicy.publicInternet
    /// policy.exceptions = [.init(schemes: [.http], host: assets, ports: [9000], addresses: [inside])]
    /// ```
    public struct Exception: Sendable, Hashable {
        /// The schemes of its URLs: `http`, `https` or both, because the others have no host.
        public var schemes: Set<Scheme>
        /// The host, or the domain.
        public var host: HostRule
        /// The ports.
        public var ports: Set<Int>
        /// The only addresses of the host that the exception allows; `nil` for any, if you trust the name service with
        /// that name.
        public var addresses: [AddressRange]?

        /// Creates an exception.
        ///
        /// ```swift
        /// let inside = NetworkPolicy.Exception(schemes: [.https], host: HostRule(domain: "internal")!, ports: [443])
        /// ```
        public init(schemes: Set<Scheme>, host: HostRule, ports: Set<Int>, addresses: [AddressRange]? = nil) {
            self.schemes = schemes
            self.host = host
            self.ports = ports
            self.addresses = addresses
        }
    }

    /// Creates a policy that allows everything.
    ///
    /// ```swift
    /// var policy = NetworkPolicy()
    /// policy.allowedSchemes = [.https]
    /// policy.allowedHosts = [HostRule(domain: "example.com")!]
    /// ```
    public init() {}

    /// Allows everything, including private networks and files; the default.
    public static let unrestricted = NetworkPolicy()

    /// Allows only public web servers, for servers that load URLs of their clients.
    ///
    /// It allows `http` and `https` on the ports 80 and 443, without user information in URLs. It denies addresses that
    /// are not globally reachable, and names of local networks, such as `localhost` and `metadata.google.internal`.
    public static let publicInternet: NetworkPolicy = {
        var policy = NetworkPolicy()
        policy.allowedSchemes = [.http, .https]
        policy.allowedPorts = [80, 443]
        policy.deniedHosts = Self.localNames
        policy.deniedAddresses = AddressSet.notPublic
        policy.allowsUserInformation = false
        return policy
    }()

    /// The names of local networks (RFC 6761, 6762, 8375; ICANN reserves `internal` for them), and names in the hosts
    /// files of systems and clouds.
    private static let localNames =
        ["localhost", "local", "home.arpa", "internal", "localdomain", "intranet", "lan", "corp", "home", "private"]
        .map { HostRule(known: $0, includesSubdomains: true) }
        + ["ip6-localhost", "ip6-loopback", "metadata", "instance-data"]
        .map { HostRule(known: $0, includesSubdomains: false) }
}
