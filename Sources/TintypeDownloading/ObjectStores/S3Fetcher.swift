// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// Fetches objects of S3 or a compatible store, with URLs such as `s3://bucket/holidays/beach.jpg`.
///
/// A query names a version: `s3://bucket/key?version`. Another fetcher sends the requests, and libcurl signs them. A
/// redirect to another host carries no signature.
package struct S3Fetcher: ImageFetching {
    private let endpoint: S3Endpoint
    private let credentials: Credentials?
    private let fetcher: any ImageFetching

    /// Creates a fetcher.
    ///
    /// - Parameters:
    ///   - endpoint: The store.
    ///   - key: The key that signs requests, for the endpoint's region; `nil` sends them unsigned, for public buckets.
    ///   - fetcher: The fetcher of HTTP requests, usually a ``DownloadActor``.
    package init(endpoint: S3Endpoint, key: AWSSigningKey?, fetcher: any ImageFetching) {
        self.endpoint = endpoint
        self.credentials = key.map { .awsSignature($0) }
        self.fetcher = fetcher
    }

    package func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        try await self.fetcher.response(for: self.webRequest(for: request), observer: observer)
    }

    package func priorityDidChange(
        of request: DownloadRequest,
        to priority: @escaping @Sendable () -> DownloadPriority
    ) async {
        guard let request = try? self.webRequest(for: request) else { return }
        await self.fetcher.priorityDidChange(of: request, to: priority)
    }

    /// Returns the HTTP request for an object.
    func webRequest(for request: DownloadRequest) throws(DownloadError) -> DownloadRequest {
        var web = request
        web.url = try self.endpoint.url(of: S3Object(request.url))
        web.credentials = self.credentials
        web.networkPolicy = self.endpoint.admitted(by: request.networkPolicy)
        // libcurl signs all fields, and sorts them wrongly if one name begins with another name and a hyphen.
        web.headers = request.headers.filter { Self.usefulFields.contains($0.name.lowercased()) }
        return web
    }

    /// The fields that mean something to a store, and do not replace the signature.
    private static let usefulFields: Set<String> = [
        "cache-control", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "range",
        "traceparent",
    ]
}
