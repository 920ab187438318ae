// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
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
    /// A request fails with ``TintypeErrorCode/invalidURL`` if `url` names no proxy, for example because a setting is
    /// empty. It never goes directly to the server instead.
    ///
    /// ```swift
    /// var configuration = LoaderActor.Configuration()
    /// configuration.downloads.proxy = .proxy("http://proxy.example.org:3128", exceptions: ["example.org"])
    /// ```
    ///
    /// - Parameters:
    ///   - url: A URL such as `http://proxy.example.org:3128`; also `https`, `socks4`, `socks4a`, `socks5` and
    ///     `socks5h`.
    ///   - credentials: Basic or digest credentials, for the proxy alone.
    ///   - exceptions: Hosts and domains that are reached without the proxy.
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

    private static let schemes: Set<String> = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

    /// Whether libcurl takes `url` for a proxy.
    ///
    /// It goes straight to the server if the text is empty, so that a check of the proxy alone would check nothing. The
    /// text is read by libcurl's own parser, with the flags that a transfer reads it with.
    static func namesProxy(_ url: String) -> Bool {
        guard let parts = curl_url() else { return false }
        defer { curl_url_cleanup(parts) }
        let flags = UInt32(CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME)
        guard curl_url_set(parts, CURLUPART_URL, url, flags) == CURLUE_OK,
            let scheme = ConnectionTarget.part(CURLUPART_SCHEME, of: parts),
            let host = ConnectionTarget.part(CURLUPART_HOST, of: parts)
        else { return false }
        return self.schemes.contains(scheme.lowercased()) && !host.isEmpty
    }
}
