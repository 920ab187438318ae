public import FoundationEssentials
public import TintypeHTTP

/// Brings the bodies of resources: where a loader gets what its cache does not have.
///
/// ``DownloadActor`` brings them over the network, and is what a loader uses by default. One of another kind reads a
/// database, an object store or a scheme of its own, or wraps another one: a tier that machines share, a test's origin.
///
/// A loader asks for a source once however many want it, and for one body of a source at a time. It judges, stores and
/// revalidates what comes by the status and the fields of the response, as HTTP does.
public protocol ImageFetching: Sendable {
    /// Brings the body of a resource.
    ///
    /// A request that has 304 among its acceptable status codes is conditional: such a response, without a body, says
    /// that what the loader has is current. A response without a status, as that of a file, has no freshness.
    ///
    /// - Throws: ``DownloadError`` where the resource can't be had; its code decides whether a stale image may stand
    ///   in. `CancellationError` as soon as the task is cancelled.
    func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse

    /// Hears that a request under way has become more or less urgent; by default nothing happens.
    func priorityDidChange(of request: DownloadRequest, to priority: @escaping @Sendable () -> DownloadPriority) async
}

extension ImageFetching {
    public func priorityDidChange(
        of request: DownloadRequest,
        to priority: @escaping @Sendable () -> DownloadPriority
    ) async {}
}

/// What looks on while a body is fetched.
public struct FetchObserver: Sendable {
    /// How urgent the body is at this moment.
    public let priority: @Sendable () -> DownloadPriority
    /// Is shown how much has been received; must be quick and must not block.
    public let didProgress: @Sendable (TransferProgress) -> Void
    /// Is shown the bytes of the body in their order, for previews; `nil` where nothing looks at them.
    ///
    /// Must be quick and must not block. A fetcher that can't show them leaves it alone.
    public let didReceive: (@Sendable (Data) -> Void)?

    /// Creates an observer; without arguments it looks at nothing.
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
    /// Makes a response of a fetcher's own.
    ///
    /// - Parameters:
    ///   - body: The body.
    ///   - url: Where it came from, after redirects.
    ///   - status: The status, or `nil` where there is none, as of a file.
    ///   - headers: The header fields; `Cache-Control`, `ETag` and their kind mean what they mean in HTTP.
    ///   - redirectCount: The redirects that were followed: how long what they lead to is fresh does not say how long they
    ///     lead there, so that it is revalidated each time.
    ///   - requestTime: When it was asked for.
    ///   - responseTime: When it began to come.
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
