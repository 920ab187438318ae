/// What a downloader may be made to fetch.
///
/// A server that loads URLs which others give it must not be led to its own services. Schemes, user
/// information, ports and hosts are checked before a request is sent and again at each redirect. Addresses are
/// checked where a connection is made, on the very address that is connected to: a name that changes
/// its address between two look-ups gains nothing. A host with several addresses is reached at one that
/// is allowed; where all are denied, the error is ``DownloadError/Code/addressNotAllowed``.
///
/// A policy belongs to a downloader, or to one request. A connection that is kept open is used for a request only where
/// that one's policy allows the address that it leads to.
///
/// Images that are in a cache are not fetched, so that no policy is asked about them.
///
/// Through a proxy that the program names, the address connected to is the proxy's, and only the proxy knows that of the host:
/// hosts that are written as addresses are still checked, those that are names only by name. A
/// proxy that should keep clients out of its network must do so itself. The same holds for Unix-domain sockets. A proxy
/// from the environment is checked like any other address.
public struct NetworkPolicy: Sendable, Hashable {
    /// The schemes of URLs that can be loaded.
    public enum Scheme: String, Sendable, Hashable, CaseIterable {
        case http
        case https
        case file
        case data
    }

    /// The schemes that are allowed.
    public var allowedSchemes = Set(Scheme.allCases)
    /// The ports that are allowed, or `nil` for all.
    public var allowedPorts: Set<Int>?
    /// The only hosts that are allowed, or `nil` for all.
    ///
    /// Their addresses are checked all the same.
    public var allowedHosts: [HostRule]?
    /// The hosts that are denied, even where ``allowedHosts`` has them.
    public var deniedHosts: [HostRule] = []
    /// The addresses that are denied.
    ///
    /// An IPv6 address that leads to an IPv4 address is denied with it: IPv4-mapped, -compatible and -translated
    /// addresses, NAT64, 6to4, Teredo and ISATAP. `0.0.0.0` and `::` are denied with the loopback addresses.
    public var deniedAddresses: [AddressSet] = []
    /// The addresses that are allowed, even where ``deniedAddresses`` has them.
    public var allowedAddresses: [AddressRange] = []
    /// The NAT64 prefixes of the network beside the registered `64:ff9b::/96` and `64:ff9b:1::/48`.
    ///
    /// Prefixes of 32, 40, 48, 56, 64 and 96 bits are in use (RFC 6052).
    public var translationPrefixes: [AddressRange] = []
    /// What is allowed although the lists above deny it, such as one server inside; see ``Exception``.
    public var exceptions: [Exception] = []
    /// Whether a URL may hold a user and a password.
    ///
    /// They make `http://example.org@127.0.0.1/` look like something else; a request has fields of its own for
    /// credentials.
    public var allowsUserInformation = true

    /// One place that is allowed although a policy's lists deny it.
    ///
    /// All of its parts must fit a request together, so that it opens nothing else: `http` to `assets.internal` on the
    /// port 9000, where that name leads into `10.0.0.0/8`, is not `https` there, not another port, and not another
    /// name that leads to the same address.
    ///
    ///     var policy = NetworkPolicy.publicInternet
    ///     policy.exceptions = [.init(schemes: [.http], host: assets, ports: [9000], addresses: [inside])]
    public struct Exception: Sendable, Hashable {
        /// The schemes of its URLs; of `http` and `https`, the others have no host.
        public var schemes: Set<Scheme>
        /// The host, or the domain.
        public var host: HostRule
        /// The ports.
        public var ports: Set<Int>
        /// The addresses that the host may lead to and no others, unless the lists allow the request without it; `nil`
        /// for any, where the name service is trusted with that name.
        public var addresses: [AddressRange]?

        /// Creates an exception.
        public init(schemes: Set<Scheme>, host: HostRule, ports: Set<Int>, addresses: [AddressRange]? = nil) {
            self.schemes = schemes
            self.host = host
            self.ports = ports
            self.addresses = addresses
        }
    }

    /// Creates a policy that allows everything; deny what is to be denied.
    public init() {}

    /// Everything is allowed, private networks and files too; the default.
    public static let unrestricted = NetworkPolicy()

    /// Only public web servers, for servers that load what others ask for.
    ///
    /// That is `http` and `https` on the ports 80 and 443, no user information in URLs, no address that is
    /// not globally reachable, and no name that only a local network knows, such as `localhost` and
    /// `metadata.google.internal`.
    public static let publicInternet: NetworkPolicy = {
        var policy = NetworkPolicy()
        policy.allowedSchemes = [.http, .https]
        policy.allowedPorts = [80, 443]
        policy.deniedHosts = Self.localNames
        policy.deniedAddresses = AddressSet.notPublic
        policy.allowsUserInformation = false
        return policy
    }()

    /// Names of local networks (RFC 6761, 6762, 8375; `internal` is set aside for them by ICANN), and names
    /// that the hosts files of systems and clouds have.
    private static let localNames =
        ["localhost", "local", "home.arpa", "internal", "localdomain", "intranet", "lan", "corp", "home", "private"]
        .map { HostRule(known: $0, includesSubdomains: true) }
        + ["ip6-localhost", "ip6-loopback", "metadata", "instance-data"]
        .map { HostRule(known: $0, includesSubdomains: false) }
}
