// SPDX-License-Identifier: Apache-2.0

/// Patterns for the sources that a server allows.
///
/// `https://*.example.com/photos/` allows every host below `example.com`, on the port of the scheme, and every path
/// that starts with `/photos/`. A `*` stands for any characters except slashes. Each part of a URL is compared with the
/// same part of the pattern, so that no other part can pass for a host.
package struct SourcePatterns: Sendable, Hashable {
    private struct Pattern: Hashable {
        let scheme: WildcardPattern
        let host: WildcardPattern
        /// The pattern of the port.
        ///
        /// `nil` stands for the port of the scheme.
        let port: WildcardPattern?
        let path: WildcardPattern
    }

    private let patterns: [Pattern]

    /// Creates patterns from their texts.
    ///
    /// Throws if a text has no scheme.
    package init(_ texts: [String]) throws(AddressSettingsError) {
        var patterns: [Pattern] = []
        for text in texts {
            let bytes = Array(text.utf8)
            guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
                throw AddressSettingsError(
                    message: "The pattern of sources \"\(text)\" has no scheme. Write it as https://example.com/."
                )
            }
            let rest = bytes[(colon + 3)...]
            let hostEnd = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            var host = rest[..<hostEnd]
            var port: WildcardPattern?
            let bracket = host.lastIndex(of: UInt8(ascii: "]")) ?? host.startIndex
            if let colon = host[bracket...].firstIndex(of: UInt8(ascii: ":")) {
                port = WildcardPattern(host[colon...].dropFirst())
                host = host[..<colon]
            }
            patterns.append(
                Pattern(
                    scheme: WildcardPattern(bytes[..<colon]),
                    host: WildcardPattern(String(decoding: host, as: UTF8.self).lowercased().utf8),
                    port: port,
                    path: WildcardPattern(rest[hostEnd...])
                )
            )
        }
        self.patterns = patterns
    }

    /// Returns whether a pattern allows `source`, a URL from an address or from a redirect.
    package func allows(_ source: String) -> Bool {
        guard let url = try? SourceURL(Array(source.utf8)) else { return false }
        return self.allows(url)
    }

    func allows(_ url: SourceURL) -> Bool {
        // Programs differ in the normal form of other hosts. Their ASCII form can be allowed.
        guard !url.scheme.isWeb || url.host.allSatisfy({ $0 < 0x80 }) else { return false }
        return self.patterns.contains { pattern in
            guard pattern.scheme.match(Array(url.scheme.rawValue.utf8), isWhole: true) != nil,
                pattern.host.match(url.host, isWhole: true) != nil,
                pattern.path.match(url.path) != nil
            else { return false }
            guard let port = url.port else { return true }
            guard let allowed = pattern.port else { return port == url.scheme.port }
            return allowed.match(Array("\(port)".utf8), isWhole: true) != nil
        }
    }
}
