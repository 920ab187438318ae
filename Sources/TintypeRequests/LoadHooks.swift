// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeDownloading

/// The functions that change requests to origins and their responses, for all loads of a loader or for one.
///
/// They apply to any fetcher and to `file:` and `data:` URLs, and receive the request of the load as well. Each function runs
/// once for each flight, and again if the flight requests the origin again. It may suspend. If it throws, the load fails with
/// ``TintypeErrorCode/refused``, or for ``decrypt`` with ``TintypeErrorCode/decryptionFailed``. The thrown error is the
/// underlying error, unless it is a `DownloadError`, which the load throws itself.
///
/// ``DownloadHooks`` has functions of the same names for a downloader without a loader. They run once for each transfer, which
/// several flights may share, and the downloader may repeat a request after a status that ``modifyResponse`` set.
///
/// ```swift
/// var configuration = LoaderActor.Configuration()
/// configuration.hooks.decrypt = { body, response, request in try decrypt(body) }
/// ```
public struct LoadHooks: Sendable {
    /// Changes the request to the origin, or refuses it by throwing.
    ///
    /// It does not change the key under which the bytes are stored.
    public var modifyRequest:
        (@Sendable (_ download: DownloadRequest, _ request: ImageRequest) async throws -> DownloadRequest)?
    /// Decrypts a body.
    ///
    /// A load with it has no previews.
    public var decrypt:
        (@Sendable (_ body: Data, _ response: DownloadResponse, _ request: ImageRequest) async throws -> Data)?
    /// Changes a whole response after decryption, or refuses it by throwing.
    ///
    /// The loader checks the status and the body size of the result as for a response of an origin. The function does not
    /// receive a 304.
    public var modifyResponse:
        (@Sendable (_ response: DownloadResponse, _ request: ImageRequest) async throws -> DownloadResponse)?

    /// Creates hooks; by default none.
    ///
    /// ```swift
    /// request.source.hooks = Named("token", LoadHooks(modifyRequest: { download, request in
    ///     var download = download
    ///     download.headers["X-Token"] = token
    ///     return download
    /// }))
    /// ```
    public init(
        modifyRequest: (@Sendable (DownloadRequest, ImageRequest) async throws -> DownloadRequest)? = nil,
        decrypt: (@Sendable (Data, DownloadResponse, ImageRequest) async throws -> Data)? = nil,
        modifyResponse: (@Sendable (DownloadResponse, ImageRequest) async throws -> DownloadResponse)? = nil
    ) {
        self.modifyRequest = modifyRequest
        self.decrypt = decrypt
        self.modifyResponse = modifyResponse
    }

    /// Returns the hooks of a download for `request`, whose own functions replace these; `nil` without any.
    package func downloadHooks(of request: ImageRequest) -> DownloadHooks? {
        let own = request.source.hooks?.value
        let modifyRequest = own?.modifyRequest ?? self.modifyRequest
        let decrypt = own?.decrypt ?? self.decrypt
        let modifyResponse = own?.modifyResponse ?? self.modifyResponse
        guard modifyRequest != nil || decrypt != nil || modifyResponse != nil else { return nil }
        var hooks = DownloadHooks()
        if let modifyRequest { hooks.modifyRequest = { try await modifyRequest($0, request) } }
        if let decrypt { hooks.decrypt = { try await decrypt($0, $1, request) } }
        if let modifyResponse { hooks.modifyResponse = { try await modifyResponse($0, request) } }
        return hooks
    }
}
