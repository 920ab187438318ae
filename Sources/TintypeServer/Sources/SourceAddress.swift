// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeHTTP
import TintypeImgproxy

/// The parts of a source's URL that decide whether the source is allowed.
struct SourceAddress: Sendable {
    let scheme: String
    /// The host in its canonical spelling, or the bucket.
    let host: String
    /// The port of an HTTP URL.
    let port: Int?
    /// The decoded path, which begins with a slash unless it is empty.
    let path: [UInt8]
    /// Whether a server may read a segment as `.` or `..`, and so resolve the path to another one.
    let hasDotSegments: Bool

    /// The URL without its path, for messages.
    var origin: String { "\(self.scheme)://\(self.host)\(self.port.map { ":\($0)" } ?? "")" }

    /// Reads a URL.
    ///
    /// - Throws: ``DownloadError`` if programs could understand the URL differently.
    init(_ url: URL) throws(DownloadError) {
        let text = url.absoluteString
        // A loop over an array is many times faster than one over the characters of the text.
        let bytes = Array(text.utf8)
        guard !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F || $0 == UInt8(ascii: "\\") || $0 == UInt8(ascii: "#") })
        else {
            throw .ambiguous(.invalidURL, "a control character, a backslash or a fragment")
        }
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
            throw .ambiguous(.invalidURL, "no :// behind its scheme")
        }
        self.scheme = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
        let rest = bytes[(colon + 3)...]
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        let authority = rest[..<end]
        guard !authority.contains(UInt8(ascii: "@")) else {
            throw .ambiguous(.userInformationInURL, "a user or a password")
        }
        if self.scheme == "http" || self.scheme == "https" {
            // Read the host as the downloader does. libcurl would find one behind three slashes.
            guard !authority.isEmpty, let target = ConnectionTarget(text), !target.hasUserInformation else {
                throw .ambiguous(.malformedHost, "no host that every reader reads alike")
            }
            self.host = target.host
            self.port = target.port
        } else {
            self.host = String(decoding: authority, as: UTF8.self)
            self.port = nil
        }
        self.path = PercentEncoding.decode(rest[end...].prefix { $0 != UInt8(ascii: "?") })
        // Some servers decode a path twice.
        self.hasDotSegments =
            Self.hasDotSegments(self.path)
            || self.path.contains(UInt8(ascii: "%")) && Self.hasDotSegments(PercentEncoding.decode(self.path))
    }

    /// Whether a segment is `.` or `..`, also before a semicolon, because some servers ignore the rest of the segment.
    private static func hasDotSegments(_ path: [UInt8]) -> Bool {
        var isIgnored = false
        let names = path.filter { byte in
            switch byte {
            case UInt8(ascii: ";"): isIgnored = true
            case UInt8(ascii: "/"), UInt8(ascii: "\\"): isIgnored = false
            default: break
            }
            return !isIgnored
        }
        return names[...].hasDotSegment
    }

    /// Returns the first `count` segments of the path, and the rest of the path as one more if there is any.
    ///
    /// The first segment is empty, because the path begins with a slash.
    func segments(_ count: Int) -> [ArraySlice<UInt8>] {
        self.path.split(separator: UInt8(ascii: "/"), maxSplits: count, omittingEmptySubsequences: false)
    }
}

extension DownloadError {
    fileprivate static func ambiguous(_ code: Code, _ fault: String) -> DownloadError {
        DownloadError(
            code: code,
            message: "The URL of the source has \(fault); write it without, and encode such characters in its path."
        )
    }
}
