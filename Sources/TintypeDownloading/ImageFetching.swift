// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeHTTP

/// A fetcher of the bodies that the cache of a loader does not have.
///
/// ``DownloadActor``, the default, fetches them over the network. Another fetcher may read a database, an object store
/// or a scheme of its own, or wrap another fetcher: a tier that machines share, or the origin of a test.
///
/// A loader calls it once for all callers of a source, and for one body of a source at a time. It stores and
/// revalidates responses by their status and fields, as HTTP does.
///
/// ```swift
/// struct ArchiveFetcher: ImageFetching {
///     let archive: any Archive
///
///     func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
///         let body = try await archive.item(named: request.url.path())
///         return DownloadResponse(body: body ?? Data(), url: request.url, status: body == nil ? 404 : 200)
///     }
/// }
/// ```
public protocol ImageFetching: Sendable {
    /// Fetches the body of a resource.
    ///
    /// A request with 304 among its acceptable status codes is conditional: a response with that status, without a
    /// body, confirms the response that the loader has. A response without a status, such as that of a file, has no
    /// freshness.
    ///
    /// - Throws: ``DownloadError``, whose code decides whether a stale image may answer; `CancellationError` as soon as
    ///   the task is cancelled.
    func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse

    /// Receives a new priority of a request under way; by default does nothing.
    func priorityDidChange(of request: DownloadRequest, to priority: @escaping @Sendable () -> DownloadPriority) async
}

extension ImageFetching {
    public func priorityDidChange(
        of request: DownloadRequest,
        to priority: @escaping @Sendable () -> DownloadPriority
    ) async {}
}

/// The observer of a fetch.
public struct FetchObserver: Sendable {
    /// Returns the priority at this moment.
    public let priority: @Sendable () -> DownloadPriority
    /// Receives the progress.
    ///
    /// Must be quick and must not block.
    public let didProgress: @Sendable (TransferProgress) -> Void
    /// Receives the bytes of the body in order, for previews; `nil` without previews.
    ///
    /// Must be quick and must not block. A fetcher need not call it.
    public let didReceive: (@Sendable (Data) -> Void)?

    /// Creates an observer, by default without functions.
    ///
    /// ```swift
    /// let observer = FetchObserver(didProgress: { progress in print(progress.fractionCompleted ?? 0) })
    /// let response = try await downloads.response(for: DownloadRequest(url: url), observer: observer)
    /// ```
    public init(
        priority: @escaping @Sendable () -> DownloadPriority = { .normal },
        didProgress: @escaping @Sendable (TransferProgress) -> Void = { _ in },
        didReceive: (@Sendable (Data) -> Void)? = nil
    ) {
        self.priority = priority
        self.didProgress = didProgress
        self.didReceive = didReceive
    }
}

extension DownloadResponse {
    /// Creates a response, for fetchers of other kinds.
    ///
    /// ```swift
    /// let response = DownloadResponse(body: data, url: url, headers: ["Cache-Control": "max-age=3600"])
    /// ```
    ///
    /// - Parameters:
    ///   - body: The body.
    ///   - url: The URL of the body, after redirects.
    ///   - status: The status; `nil` without one, for example for a file.
    ///   - headers: The header fields; `Cache-Control`, `ETag` and their kind have their meaning in HTTP.
    ///   - redirectCount: The number of redirects. The freshness of the target says nothing about the freshness of the
    ///     redirect, so the loader revalidates such a response each time.
    ///   - requestTime: The date of the request.
    ///   - responseTime: The date at which the response began to arrive.
    public init(
        body: Data,
        url: URL,
        status: Int? = 200,
        headers: HeaderFields = [:],
        redirectCount: Int = 0,
        requestTime: Date = Date(),
        responseTime: Date = Date()
    ) {
        var metrics = TransferMetrics()
        metrics.bytes = Int64(body.count)
        metrics.redirectCount = redirectCount
        self.init(
            body: body,
            status: status,
            headers: headers,
            url: url,
            metrics: metrics,
            requestTime: requestTime,
            responseTime: responseTime
        )
    }
}
