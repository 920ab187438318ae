import Glibc

/// The proxy that requests go through, if any.
public struct ProxyPolicy: Sendable, Hashable {
    enum Value: Sendable, Hashable {
        case none
        case environment
        case explicit(url: String, credentials: Credentials?, exceptions: [String])
    }

    let value: Value

    /// Straight to the server, whatever the environment says.
    public static let none = ProxyPolicy(value: .none)
    /// Through the proxies that `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` name.
    public static let environment = ProxyPolicy(value: .environment)

    /// Through one proxy.
    ///
    /// - Parameters:
    ///   - url: Such as `http://proxy.example.org:3128`; also `https`, `socks4a`, `socks5` and `socks5h`.
    ///   - credentials: Basic or digest, for the proxy alone.
    ///   - exceptions: Hosts and domains that are reached straight.
    /// - Returns: The policy.
    public static func proxy(
        _ url: String,
        credentials: Credentials? = nil,
        exceptions: [String] = []
    ) -> ProxyPolicy {
        ProxyPolicy(value: .explicit(url: url, credentials: credentials, exceptions: exceptions))
    }

    /// Whether the connection to the proxy may itself be under TLS.
    var mayUseTLS: Bool {
        switch self.value {
        case .none: false
        case .explicit(let url, _, _): url.lowercased().hasPrefix("https:")
        case .environment:
            ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].contains { (name: String) in
                getenv(name).map { String(cString: $0).lowercased().hasPrefix("https:") } ?? false
            }
        }
    }
}
