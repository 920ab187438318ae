// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeHTTP

/// A pattern of allowed sources.
struct SourcePattern: Sendable {
    private enum Port: Sendable {
        case any
        case only(Int)
        /// The port of the scheme.
        case usual
    }

    /// The schemes of sources.
    static let schemes = ["http", "https", "local", "s3"]

    private let scheme: [UInt8]
    /// The labels of the host, or the bucket as one label; `nil` for any.
    private let labels: [[UInt8]]?
    private let port: Port
    /// The segments of the path, the last of which may be incomplete; `nil` for any path.
    private let segments: [[UInt8]]?

    /// Reads a pattern; see ``AllowedSources/init(patterns:)``.
    init(_ text: String) throws(DownloadError) {
        guard let separator = text.firstRange(of: "://"), !text[..<separator.lowerBound].isEmpty else {
            throw .notAPattern(text, "has no scheme and :// at its start")
        }
        guard FieldText.isPlain(text), !text.utf8.contains(where: { "\\#?@".utf8.contains($0) }) else {
            throw .notAPattern(text, "has a ?, #, @, backslash or control character")
        }
        guard Self.schemes.contains(text[..<separator.lowerBound].lowercased()) else {
            throw .notAPattern(text, "has another scheme than \(Self.schemes.joined(separator: ", "))")
        }
        self.scheme = Array(text[..<separator.lowerBound].lowercased().utf8)
        let rest = text[separator.upperBound...]
        let authority = rest.prefix { $0 != "/" }
        guard !authority.contains(where: \.isWhitespace) else { throw .notAPattern(text, "has a space in its host") }
        let path = PercentEncoding.decode(rest[authority.endIndex...].utf8)
        self.segments =
            path.isEmpty || path == [UInt8(ascii: "/")]
            ? nil : path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { Array($0) }
        guard !authority.isEmpty else {
            // Files have no host.
            guard self.segments == nil || self.scheme == Array("local".utf8) else {
                throw .notAPattern(text, "has a path but no host")
            }
            self.labels = nil
            self.port = .any
            return
        }
        let afterBrackets = authority.lastIndex(of: "]") ?? authority.startIndex
        let colon = authority[afterBrackets...].lastIndex(of: ":")
        switch colon.map({ authority[$0...].dropFirst() }) {
        case nil: self.port = .usual
        case "*"?: self.port = .any
        case let number?:
            guard let port = UInt16(number) else { throw .notAPattern(text, "has a port that is not a number or *") }
            self.port = .only(Int(port))
        }
        let host = authority[..<(colon ?? authority.endIndex)]
        guard host.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw .notAPattern(text, "has a host with other letters than ASCII, which URLs have in Punycode (xn--...)")
        }
        // Case matters in the names of buckets.
        let isBucket = self.scheme == Array("s3".utf8)
        self.labels = Self.labels(of: isBucket ? String(host) : host.lowercased(), isBucket: isBucket).map { Array($0) }
    }

    /// Whether a pattern looks as if its author expects it to match longer hosts, as the prefixes of imgproxy do.
    ///
    /// The host of the pattern then ends with a dot, or has a single label and no slash after it.
    static func endsWithinHost(_ text: String) -> Bool {
        guard let mark = text.firstRange(of: "://"), ["http", "https"].contains(text[..<mark.lowerBound].lowercased())
        else { return false }
        let rest = text[mark.upperBound...]
        let authority = rest.prefix { $0 != "/" }
        guard !authority.isEmpty, !["localhost", "*", "*."].contains(authority) else { return false }
        return authority.hasSuffix(".") || authority == rest && !authority.contains { ".:".contains($0) }
    }

    /// Whether the pattern allows a source.
    func matches(_ address: SourceAddress) -> Bool {
        guard self.scheme.elementsEqual(address.scheme.utf8), self.admits(port: address) else { return false }
        let isBucket = address.scheme == "s3"
        if let labels, !Self.matches(labels: labels, Self.labels(of: address.host, isBucket: isBucket)) { return false }
        guard let segments else { return true }
        // With dot segments, a server may leave the allowed folder.
        guard !address.hasDotSegments else { return false }
        let names = address.segments(segments.count)
        guard names.count >= segments.count else { return false }
        let last = segments.count - 1
        return zip(segments, names).enumerated().allSatisfy { index, pair in
            Self.matches(pair.0 + (index == last ? [UInt8(ascii: "*")] : []), pair.1)
        }
    }

    private func admits(port address: SourceAddress) -> Bool {
        switch self.port {
        case .any: true
        case .only(let port): address.port == port
        case .usual: address.port == nil || address.port == (address.scheme == "https" ? 443 : 80)
        }
    }

    /// Returns the labels of a host in the spelling of ``SourceAddress``.
    private static func labels(of host: String, isBucket: Bool) -> [ArraySlice<UInt8>] {
        var name = Array(host.utf8)[...]
        guard !isBucket else { return [name] }
        if name.first == UInt8(ascii: "["), name.last == UInt8(ascii: "]"), name.count > 1 {
            name = name.dropFirst().dropLast()
        }
        if name.last == UInt8(ascii: ".") { name.removeLast() }
        return name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    }

    /// Whether the labels of a host match; a star as the first label stands for one or more labels.
    private static func matches(labels pattern: [[UInt8]], _ labels: [ArraySlice<UInt8>]) -> Bool {
        let rest = pattern.first == [UInt8(ascii: "*")] ? pattern.dropFirst() : pattern[...]
        guard rest.count == pattern.count ? labels.count == rest.count : labels.count > rest.count else { return false }
        return zip(rest, labels.suffix(rest.count)).allSatisfy { self.matches($0, $1) }
    }

    /// Whether a text matches, with stars for any number of bytes.
    ///
    /// Only the last star is ever moved, so the time is bounded by the product of the lengths.
    static func matches(_ pattern: [UInt8], _ text: ArraySlice<UInt8>) -> Bool {
        var (position, index) = (0, text.startIndex)
        var star: (position: Int, index: Int)?
        while index < text.endIndex {
            if position < pattern.count, pattern[position] == UInt8(ascii: "*") {
                star = (position, index)
                position += 1
            } else if position < pattern.count, pattern[position] == text[index] {
                position += 1
                index += 1
            } else if let last = star {
                star = (last.position, last.index + 1)
                position = last.position + 1
                index = last.index + 1
            } else {
                return false
            }
        }
        return pattern[position...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}

extension DownloadError {
    fileprivate static func notAPattern(_ text: String, _ fault: String) -> DownloadError {
        DownloadError(
            code: .invalidURL,
            message: "The pattern \(text) of allowed sources \(fault); write it as https://*.example.com/photos/."
        )
    }
}
