// SPDX-License-Identifier: Apache-2.0

/// A host, or a domain with all that is in it.
///
/// Names are compared without regard to case and to a dot at their end. Names with other letters than
/// ASCII are written as they are looked up, in Punycode: `xn--bcher-kva.example`.
public struct HostRule: Sendable, Hashable, CustomStringConvertible {
    /// The name in lower case, without a dot at its end; an IPv6 address without brackets.
    let name: String
    let includesSubdomains: Bool

    /// The host of exactly this name, or this IP address, or `nil` where `name` is neither.
    ///
    /// ```swift
    /// let host = HostRule(exactly: "images.example.com")
    /// ```
    public init?(exactly name: String) {
        self.init(name, includesSubdomains: false)
    }

    /// Creates a rule for the host `name` and every host whose name ends with a dot and `name`; `nil` if it is not a
    /// name.
    ///
    /// `example.org` contains `example.org` and `a.b.example.org`, but not `badexample.org`.
    ///
    /// ```swift
    /// var policy = NetworkPolicy.publicInternet
    /// if let domain = HostRule(domain: "example.com") { policy.allowedHosts = [domain] }
    /// ```
    public init?(domain name: String) {
        guard IPAddress(name) == nil else { return nil }
        self.init(name, includesSubdomains: true)
    }

    private init?(_ name: String, includesSubdomains: Bool) {
        guard let host = HostName.canonical(name) else { return nil }
        self.name = host
        self.includesSubdomains = includesSubdomains
    }

    /// Names of our own, which are known to be well written.
    init(known name: String, includesSubdomains: Bool) {
        self.name = name
        self.includesSubdomains = includesSubdomains
    }

    public var description: String { self.includesSubdomains ? "\(self.name) and its subdomains" : self.name }

    /// Whether a host is meant; `host` is in the one spelling of ``HostName``.
    func matches(_ host: String) -> Bool {
        guard self.includesSubdomains else { return host == self.name }
        guard host.utf8.count > self.name.utf8.count else { return host == self.name }
        return host.hasSuffix(self.name) && host.utf8.dropLast(self.name.utf8.count).last == UInt8(ascii: ".")
    }
}
