// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Tintype

/// Fetches the sources of the server, by the scheme of their URLs: `http`, `https`, `local` and `s3`.
///
/// It fetches only allowed sources. The fetcher of HTTP must check redirects as well, see ``webHooks(for:)``.
package struct SourceFetcher: ImageFetching {
    private let sources: AllowedSources
    private let web: any ImageFetching
    private let local: LocalFolderFetcher?
    private let store: S3Fetcher?

    /// Creates a fetcher.
    ///
    /// - Parameters:
    ///   - sources: The allowed sources.
    ///   - web: The fetcher of `http` and `https` URLs.
    ///   - local: The fetcher of `local` URLs; `nil` switches them off.
    ///   - store: The fetcher of `s3` URLs; `nil` switches them off.
    package init(
        sources: AllowedSources,
        web: any ImageFetching,
        local: LocalFolderFetcher? = nil,
        store: S3Fetcher? = nil
    ) {
        self.sources = sources
        self.web = web
        self.local = local
        self.store = store
    }

    /// Returns the hooks of the downloader behind the fetcher, which check each redirect.
    package static func webHooks(for sources: AllowedSources) -> DownloadHooks {
        DownloadHooks(checkRedirect: { try sources.check($0) })
    }

    package func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        try await self.fetcher(of: request.url).response(for: request, observer: observer)
    }

    package func priorityDidChange(
        of request: DownloadRequest,
        to priority: @escaping @Sendable () -> DownloadPriority
    ) async {
        try? await self.fetcher(of: request.url).priorityDidChange(of: request, to: priority)
    }

    /// Throws if the server does not fetch a source.
    ///
    /// Needs no I/O, so the server can refuse a request before it queues.
    package func check(_ url: URL) throws(DownloadError) {
        _ = try self.fetcher(of: url)
    }

    private func fetcher(of url: URL) throws(DownloadError) -> any ImageFetching {
        let scheme = SourceScheme(url)
        let fetcher: (any ImageFetching)? =
            switch scheme {
            case .http, .https: self.web
            case .local: self.local
            case .s3: self.store
            case nil: throw .unknownScheme(url)
            }
        guard let fetcher else { throw .switchedOff(scheme, url) }
        try self.sources.check(url)
        return fetcher
    }
}

/// The scheme of a source.
enum SourceScheme: String, Sendable {
    case http
    case https
    case local
    case s3

    init?(_ url: URL) {
        self.init(rawValue: url.absoluteString.prefix { $0 != ":" }.lowercased())
    }
}

extension DownloadError {
    fileprivate static func switchedOff(_ scheme: SourceScheme?, _ url: URL) -> DownloadError {
        let (name, flag) = scheme == .local ? ("local", "--local-root DIR") : ("s3", "--s3")
        return DownloadError(
            code: .schemeNotAllowed,
            message: "Sources with the scheme \(name) are switched off; start the server with \(flag) to serve them.",
            url: url
        )
    }

    fileprivate static func unknownScheme(_ url: URL) -> DownloadError {
        DownloadError(
            code: .unsupportedScheme,
            message: "The source has none of the schemes http, https, local and s3; use one of them.",
            url: url
        )
    }
}
