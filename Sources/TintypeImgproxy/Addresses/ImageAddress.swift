// SPDX-License-Identifier: Apache-2.0

/// The meaning of an imgproxy URL: a source and what to do with it.
package struct ImageAddress: Sendable, Hashable {
    package var options: ProcessingOptions
    /// The scheme of the source.
    package var scheme: SourceScheme
    /// The absolute URL of the source.
    ///
    /// A URL with `http` or `https` has ASCII characters only, except in the name of the host. It has no user name, no
    /// fragment and no dot segments. In other URLs, everything after the scheme is the key, and no character of it is
    /// encoded.
    package var source: String
    /// The version of an object in a store: the text after the query separator.
    ///
    /// Always `nil` for `http` and `https`.
    package var objectVersion: String?
}

/// The kinds of sources.
package enum SourceScheme: String, Sendable, Hashable, CaseIterable {
    case http, https, local, s3
    /// A file that the page of the server has uploaded.
    case upload

    /// Whether the source is a URL of the web.
    package var isWeb: Bool { self == .http || self == .https }
}
