// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeHTTP

/// The parts of a source's URL, as they decide whether the source is allowed.
struct SourceAddress: Sendable {
    let scheme: String
    /// The host in its one spelling, or the bucket.
    let host: String
    /// The port of a URL of HTTP.
    let port: Int?
    /// The decoded segments of the path, the first of which is empty.
    let segments: [[UInt8]]
    /// Whether a segment is `.` or `..`, so that a server may read the path as another one.
    let hasDotSegments: Bool

    /// The URL without its path, for messages.
    var origin: String { "\(self.scheme)://\(self.host)\(self.port.map { ":\($0)" } ?? "")" }

    /// Reads a URL.
    ///
    /// - Throws: ``DownloadError`` if it is not one that every reader reads alike.
    init(_ url: URL) throws(DownloadError) {
        let text = url.absoluteString
        guard FieldText.isPlain(text), !text.utf8.contains(where: { "\\#".utf8.contains($0) }) else {
            throw .ambiguous(.invalidURL, "a control character, a backslash or a fragment", url)
        }
        guard let separator = text.firstRange(of: "://") else {
            throw .ambiguous(.invalidURL, "no :// behind its scheme", url)
        }
        self.scheme = text[..<separator.lowerBound].lowercased()
        let rest = text[separator.upperBound...]
        let authority = rest.prefix { !"/?".contains($0) }
        guard !authority.utf8.contains(UInt8(ascii: "@")) else {
            throw .ambiguous(.userInformationInURL, "a user or a password", url)
        }
        if self.scheme == "http" || self.scheme == "https" {
            // As the downloader reads it. libcurl would find a host behind three slashes.
            guard !authority.isEmpty, let target = RequestTarget(text), !target.hasUserInformation else {
                throw .ambiguous(.malformedHost, "no host that every reader reads alike", url)
            }
            self.host = target.host
            self.port = target.port
        } else {
            self.host = String(authority)
            self.port = nil
        }
        let path = PercentEncoding.decode(rest[authority.endIndex...].utf8.prefix { $0 != UInt8(ascii: "?") })
        self.segments = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { Array($0) }
        self.hasDotSegments = path.split { "/\\".utf8.contains($0) }.contains { segment in
            segment.elementsEqual(".".utf8) || segment.elementsEqual("..".utf8)
        }
    }
}

extension DownloadError {
    fileprivate static func ambiguous(_ code: Code, _ fault: String, _ url: URL) -> DownloadError {
        DownloadError(
            code: code,
            message: "The URL of the source has \(fault); write it without, and encode such characters in its path."
        )
    }
}
