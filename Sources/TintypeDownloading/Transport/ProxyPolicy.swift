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
}
