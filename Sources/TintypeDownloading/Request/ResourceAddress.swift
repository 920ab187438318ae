// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeHTTP

/// A URL, looked at as far as it decides how its resource is reached.
struct ResourceAddress: Sendable {
    enum Scheme: Sendable {
        case http
        case https
        case file
        case data
    }

    /// The whole URL as it is requested; it may hold credentials.
    let text: String
    let scheme: Scheme
    /// Scheme, host and port of an HTTP URL, in one spelling: equal for URLs of one origin.
    let origin: String
    /// The host, and the port if the URL states one.
    let host: String
    /// The part after the scheme's colon.
    var resource: Substring { self.text[self.resourceStart...] }

    private let resourceStart: String.Index
    private let credentials: Range<String.Index>?

    init(_ text: String) throws(DownloadError) {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { throw .relativeURL(text) }
        let name = text[..<colon].lowercased()
        guard let scheme = Self.scheme(name) else { throw .unsupportedScheme(name) }
        self.text = text
        self.scheme = scheme
        self.resourceStart = text.utf8.index(after: colon)
        guard scheme == .http || scheme == .https else {
            self.origin = ""
            self.host = ""
            self.credentials = nil
            return
        }
        // libcurl would read it up to a NUL, and decodes what is a user and a password.
        guard FieldText.isPlain(text) else { throw .urlWithControlCharacters() }
        let rest = text[self.resourceStart...]
        guard rest.hasPrefix("//") else { throw .urlWithoutHost() }
        let start = rest.utf8.index(rest.startIndex, offsetBy: 2)
        // As libcurl reads it, or a redirect could pass another host off as this origin: a
        // backslash ends nothing, `http://a\@b/` is at `b`.
        let end = rest[start...].utf8.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
        let at = rest[start..<end].utf8.lastIndex(of: UInt8(ascii: "@"))
        let hostStart = at.map { rest.utf8.index(after: $0) } ?? start
        guard at == nil || FieldText.isPlain(PercentEncoding.decode(rest[start..<hostStart].utf8)) else {
            throw .urlWithControlCharacters()
        }
        self.credentials = at == nil ? nil : start..<hostStart
        self.host = rest[hostStart..<end].lowercased()
        guard !self.host.isEmpty, !self.host.hasPrefix(":") else { throw .urlWithoutHost() }
        self.origin = Self.origin(name, host: self.host, defaultPort: scheme == .http ? ":80" : ":443")
    }

    /// The address of a file, whatever the scheme of its URL is.
    init(ofFile url: URL) {
        self.text = url.absoluteString
        self.scheme = .file
        self.resourceStart = self.text.startIndex
        self.origin = ""
        self.host = ""
        self.credentials = nil
    }

    /// The URL without credentials, for messages and errors.
    var display: String {
        guard let credentials else { return self.text }
        return String(self.text[..<credentials.lowerBound] + self.text[credentials.upperBound...])
    }

    private static func scheme(_ name: String) -> Scheme? {
        switch name {
        case "http": .http
        case "https": .https
        case "file": .file
        case "data": .data
        default: nil
        }
    }

    private static func origin(_ scheme: String, host: String, defaultPort: String) -> String {
        // The colons of an IPv6 address are inside its brackets.
        let afterBrackets = host.utf8.lastIndex(of: UInt8(ascii: "]")) ?? host.startIndex
        let hasPort = host[afterBrackets...].utf8.contains(UInt8(ascii: ":"))
        return hasPort ? "\(scheme)://\(host)" : "\(scheme)://\(host)\(defaultPort)"
    }
}
