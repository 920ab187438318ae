// SPDX-License-Identifier: Apache-2.0

/// The host and the port of a Redis server.
public struct RedisAddress: Sendable, Hashable, CustomStringConvertible {
    /// A host name or an IP address, without brackets.
    public let host: String
    /// The port, from 1 to 65535.
    public let port: Int

    /// Creates an address.
    ///
    /// Redis usually listens on port 6379, and Sentinel on port 26379.
    ///
    /// ```swift
    /// let sentinels = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map { RedisAddress($0, port: 26_379) }
    /// let client = RedisClient(RedisConfiguration(.sentinel(sentinels, service: "images")))
    /// ```
    public init(_ host: String, port: Int = 6_379) {
        self.host = host
        self.port = port
    }

    /// The text `host:port`, with brackets around an IPv6 address.
    public var description: String {
        self.host.contains(":") ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)"
    }

    /// Reads `host`, `host:port` and `[address]:port`; returns `nil` for other texts.
    init?(text: some StringProtocol, defaultPort: Int) {
        var (host, rest) = (String(text), "")
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = String(text[text.index(after: text.startIndex)..<end])
            rest = String(text[text.index(after: end)...])
            guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
        } else if let colon = text.lastIndex(of: ":") {
            host = String(text[..<colon])
            rest = String(text[colon...])
            guard !host.contains(":") else { return nil }
        }
        let port = rest.isEmpty ? defaultPort : Int(rest.dropFirst())
        guard !host.isEmpty, let port, (1...65_535).contains(port) else { return nil }
        guard host.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return nil }
        self.init(host, port: port)
    }
}
