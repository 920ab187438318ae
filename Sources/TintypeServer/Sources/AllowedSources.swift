// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Tintype

/// The sources that the server may fetch, as patterns such as `https://*.example.com/photos/`.
///
/// Patterns look like imgproxy's, but match part by part, so that no host, user or port of a URL can pass for another
/// part. A source is allowed if one pattern matches; without patterns every source is. URLs with a user, a fragment, a
/// backslash or a control character are never allowed, because programs understand them differently.
package struct AllowedSources: Sendable {
    private let patterns: [SourcePattern]

    /// Allows every source whose URL has only one meaning.
    package static let all = AllowedSources()

    private init() {
        self.patterns = []
    }

    /// Creates a list of patterns.
    ///
    /// - `https://example.com/photos/` allows the URLs of that host whose path begins with that text.
    /// - A host `*.example.com` means all hosts below the domain, but not the domain itself. In another place of a host
    ///   a star stands for a part of one label, and in a path for a part of one segment.
    /// - Without a port only the default port is allowed; `:*` allows all ports.
    /// - `https://` allows all hosts and ports, `s3://bucket` allows a bucket, `local://` allows all files.
    ///
    /// - Throws: ``DownloadError`` that names the pattern if it is invalid.
    package init(patterns: [String]) throws(DownloadError) {
        var read: [SourcePattern] = []
        for text in patterns { read.append(try SourcePattern(text)) }
        self.patterns = read
    }

    /// Throws if a URL is not allowed.
    ///
    /// Has no side effects and does not block. Its time is linear in the length of the URL for each pattern.
    package func check(_ url: URL) throws(DownloadError) {
        let address = try SourceAddress(url)
        guard self.patterns.isEmpty || self.patterns.contains(where: { $0.matches(address) }) else {
            throw DownloadError(
                code: .hostNotAllowed,
                message:
                    "No pattern of the allowed sources matches \(address.origin); add one with --allow if it is meant.",
                url: url
            )
        }
    }
}
