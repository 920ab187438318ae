// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import TintypeCaching
import TintypeHTTP

/// The canonical text of a URL, for comparisons, without its user and password.
///
/// The text is as RFC 3986 normalises it: scheme and host in lower case, escapes of what needs none undone and the
/// others in upper case, no dot segments (6.2.2); of HTTP also no default port and no empty path (6.2.3). The
/// fragment is left out, because it is not sent. A `data:` URL, which may be long, is told by a digest. One of a scheme
/// that only a fetcher knows stays as it is, but for the case of the scheme.
struct CanonicalURL {
    let text: String
    let credentials: String?

    init(_ url: URL) {
        let text = url.absoluteString
        // Nearly every URL is canonical; nothing is copied then.
        self = Self.isCanonical(text.utf8.span) ? Self(text: text, credentials: nil) : Self(normalizing: text)
    }

    private init(text: String, credentials: String?) {
        self.text = text
        self.credentials = credentials
    }

    init(normalizing text: String) {
        let all = Array(text.utf8)[...]
        let fragment = all.firstIndex(of: .hash) ?? all.endIndex
        guard let colon = all[..<fragment].firstIndex(where: { [.colon, .slash, .question].contains($0) }),
            all[colon] == .colon
        else {
            self.text = String(decoding: all[..<fragment], as: UTF8.self)
            self.credentials = nil
            return
        }
        let scheme = String(decoding: all[..<colon], as: UTF8.self).lowercased()
        // Only the fetcher knows how URLs of its own scheme differ.
        let isKnown = ["http", "https", "file", "data"].contains(scheme)
        var rest = all[(colon + 1)..<(isKnown ? fragment : all.endIndex)]
        guard scheme != "data" else {
            self.text = "data:|\(CacheKey(String(decoding: rest, as: UTF8.self)).digest)"
            self.credentials = nil
            return
        }
        let defaultPort = ["http": "80", "https": "443"][scheme]
        var result = Array("\(scheme):".utf8)
        var credentials: String?
        var hasAuthority = false
        if rest.starts(with: [.slash, .slash]) {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex { [.slash, .question, .hash].contains($0) } ?? rest.endIndex
            let (user, host) = Self.split(rest[..<end])
            credentials = user.map { String(decoding: Self.unescapingUnreserved($0), as: UTF8.self) }
            result += [.slash, .slash]
            result += isKnown ? Self.normalized(host: host, defaultPort: defaultPort) : Array(host)
            rest = rest[end...]
            hasAuthority = true
        }
        guard isKnown else {
            self.text = String(decoding: result + rest, as: UTF8.self)
            self.credentials = credentials
            return
        }
        let query = rest.firstIndex(of: .question) ?? rest.endIndex
        var path = Self.unescapingUnreserved(rest[..<query])
        // The system resolves dot segments in file paths, because the name before `..` may be a link to another folder.
        if path.first == .slash, scheme != "file" { path = Self.removingDotSegments(path) }
        if path.isEmpty, hasAuthority, defaultPort != nil { path = [.slash] }
        result += path + Self.unescapingUnreserved(rest[query...])
        self.text = String(decoding: result, as: UTF8.self)
        self.credentials = credentials
    }

    // MARK: Looking

    /// Returns whether the text is an HTTP URL that is normal already; false also if that is not certain.
    static func isCanonical(_ text: Span<UInt8>) -> Bool {
        guard text.count > 8, text[0] == UInt8(ascii: "h"), text[1] == UInt8(ascii: "t"),
            text[2] == UInt8(ascii: "t"), text[3] == UInt8(ascii: "p")
        else { return false }
        let isSecure = text[4] == UInt8(ascii: "s")
        let colon = isSecure ? 5 : 4
        guard text[colon] == .colon, text[colon + 1] == .slash, text[colon + 2] == .slash,
            let path = self.endOfCanonicalAuthority(text, from: colon + 3, isSecure: isSecure)
        else { return false }
        var index = path
        while index < text.count {
            let byte = text[index]
            // Letters and digits, with few others: nearly all bytes, and nothing to look at.
            guard byte <= UInt8(ascii: "/") else {
                index += 1
                continue
            }
            switch byte {
            case .hash: return false
            // Perhaps a dot segment.
            case .dot where text[index - 1] == .slash: return false
            case .percent:
                guard index + 2 < text.count, let value = PercentEncoding.byte(text[index + 1], text[index + 2]),
                    !self.isUnreserved(value), !self.isLowercase(text[index + 1]),
                    !self.isLowercase(text[index + 2])
                else { return false }
                index += 3
            default: index += 1
            }
        }
        return true
    }

    /// The start of the path if normalising would leave the authority as it is; otherwise `nil`.
    private static func endOfCanonicalAuthority(_ text: Span<UInt8>, from start: Int, isSecure: Bool) -> Int? {
        var index = start
        var colon: Int?
        scan: while index < text.count {
            switch text[index] {
            case .slash: break scan
            case .colon: colon = index
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), .dot, .hyphen,
                UInt8(ascii: "["), UInt8(ascii: "]"):
                break
            default: return nil
            }
            index += 1
        }
        guard index > start, index < text.count else { return nil }
        guard let colon else { return index }
        let port = colon + 1
        guard port < index, text[port] != UInt8(ascii: "0") else { return nil }
        // The last colon of an address in brackets has no two or three digits and the end behind it.
        let isDefault =
            isSecure
            ? index - port == 3 && text[port] == UInt8(ascii: "4") && text[port + 1] == UInt8(ascii: "4")
                && text[port + 2] == UInt8(ascii: "3")
            : index - port == 2 && text[port] == UInt8(ascii: "8") && text[port + 1] == UInt8(ascii: "0")
        return isDefault ? nil : index
    }

    // MARK: Normalising

    private static func split(_ authority: ArraySlice<UInt8>) -> (user: ArraySlice<UInt8>?, host: ArraySlice<UInt8>) {
        guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else { return (nil, authority) }
        return (authority[..<at], authority[(at + 1)...])
    }

    /// Returns a host and its port, without the default port.
    private static func normalized(host: ArraySlice<UInt8>, defaultPort: String?) -> [UInt8] {
        var host = host
        if let defaultPort, let colon = host.lastIndex(of: .colon),
            !host[colon...].contains(UInt8(ascii: "]"))
        {
            let port = host[(colon + 1)...]
            let isDefault = port.drop { $0 == UInt8(ascii: "0") }.elementsEqual(defaultPort.utf8)
            if port.isEmpty || isDefault { host = host[..<colon] }
        }
        // Escapes are written in upper case all the same.
        let lowered = self.unescapingUnreserved(host).map { (65...90).contains($0) ? $0 | 0x20 : $0 }
        return self.unescapingUnreserved(lowered[...])
    }

    /// The text without escapes of what needs none (RFC 3986, 6.2.2.2), and the others in upper case (6.2.2.1).
    private static func unescapingUnreserved(_ text: ArraySlice<UInt8>) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        var index = text.startIndex
        while index < text.endIndex {
            guard text[index] == .percent, index + 2 < text.endIndex,
                let value = PercentEncoding.byte(text[index + 1], text[index + 2])
            else {
                result.append(text[index])
                index += 1
                continue
            }
            if self.isUnreserved(value) {
                result.append(value)
            } else {
                result += [.percent, digits[Int(value >> 4)], digits[Int(value & 15)]]
            }
            index += 3
        }
        return result
    }

    /// RFC 3986, 5.2.4, for a path that begins with a slash.
    private static func removingDotSegments(_ path: [UInt8]) -> [UInt8] {
        var segments: [ArraySlice<UInt8>] = []
        let all = path.dropFirst().split(separator: .slash, omittingEmptySubsequences: false)
        for (index, segment) in all.enumerated() {
            let isDots = segment.elementsEqual([.dot]) || segment.elementsEqual([.dot, .dot])
            if segment.elementsEqual([.dot, .dot]) { _ = segments.popLast() }
            // A path that ends in dots is a folder.
            if !isDots { segments.append(segment) } else if index == all.count - 1 { segments.append([]) }
        }
        return [.slash] + segments.joined(separator: [.slash])
    }

    private static func isLowercase(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
    }

    /// Whether a byte means the same escaped and not (RFC 3986, 2.3).
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), .hyphen, .dot, UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }
}

extension URL {
    /// The text of the URL without a user and a password, and those two apart.
    package var withoutCredentials: (text: String, credentials: String?) {
        let text = self.absoluteString
        guard let user = self.user() else { return (text, nil) }
        let credentials = user + (self.password().map { ":\($0)" } ?? "")
        return (text.replacing("\(credentials)@", with: "", maxReplacements: 1), credentials)
    }
}

extension UInt8 {
    fileprivate static let hash = UInt8(ascii: "#")
    fileprivate static let colon = UInt8(ascii: ":")
    fileprivate static let slash = UInt8(ascii: "/")
    fileprivate static let question = UInt8(ascii: "?")
    fileprivate static let dot = UInt8(ascii: ".")
    fileprivate static let hyphen = UInt8(ascii: "-")
    fileprivate static let percent = UInt8(ascii: "%")
}
