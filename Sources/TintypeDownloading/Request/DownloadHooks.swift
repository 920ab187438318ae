// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// The functions that change the requests and responses of a downloader.
///
/// Each runs once for a transfer, however many callers share it. All but ``checkRedirect`` run on the cooperative pool,
/// within a task that is cancelled when the last caller leaves. They do not receive `file:` and `data:` URLs. If a hook throws, the download
/// fails with ``TintypeErrorCode/refused`` (or ``TintypeErrorCode/decryptionFailed``) and the error as its
/// underlying error. A `CancellationError` and a `DownloadError` stay as they are.
public struct DownloadHooks: Sendable {
    /// Changes a request before it is sent, or refuses it by throwing.
    ///
    /// It runs after the decisions about shared transfers and about the cache key, so set fields that tell users apart
    /// in the request itself.
    public var modifyRequest: (@Sendable (DownloadRequest) async throws -> DownloadRequest)?
    /// Refuses a redirect by throwing.
    ///
    /// It receives the URL to which a response redirects, after the network policy has allowed it. It runs on the thread
    /// of the event loop, for each redirect: it must be quick and must not block.
    public var checkRedirect: (@Sendable (URL) throws -> Void)?
    /// Decrypts a body.
    ///
    /// With it, observers of bytes receive nothing, because the arriving bytes are not the body.
    public var decrypt: (@Sendable (Data, DownloadResponse) async throws -> Data)?
    /// Changes a complete response after decryption, or refuses it by throwing.
    ///
    /// The downloader checks the result like a server's response: an unacceptable status and an empty body are errors,
    /// and may be retried.
    public var modifyResponse: (@Sendable (DownloadResponse) async throws -> DownloadResponse)?

    /// Creates hooks.
    ///
    /// ```swift
    /// let hooks = DownloadHooks(decrypt: { body, response in try decrypt(body) })
    /// let downloads = DownloadActor(hooks: hooks)
    /// ```
    public init(
        modifyRequest: (@Sendable (DownloadRequest) async throws -> DownloadRequest)? = nil,
        checkRedirect: (@Sendable (URL) throws -> Void)? = nil,
        decrypt: (@Sendable (Data, DownloadResponse) async throws -> Data)? = nil,
        modifyResponse: (@Sendable (DownloadResponse) async throws -> DownloadResponse)? = nil
    ) {
        self.modifyRequest = modifyRequest
        self.checkRedirect = checkRedirect
        self.decrypt = decrypt
        self.modifyResponse = modifyResponse
    }

    /// Whether a hook receives responses.
    package var changeResponses: Bool { self.decrypt != nil || self.modifyResponse != nil }

    /// Returns the request to send instead of `request`.
    package func prepare(_ request: DownloadRequest) async throws -> DownloadRequest {
        guard let modifyRequest else { return request }
        return try await Self.explaining(
            { .refused("request", $0, url: request.url) },
            { try await modifyRequest(request) }
        )
    }

    /// Throws if the hook refuses a redirect.
    func check(redirectTo target: ResourceAddress, from address: ResourceAddress) throws(DownloadError) {
        guard let checkRedirect else { return }
        // A URL that the hook cannot be asked about is not followed.
        guard let url = URL(string: target.text) else { throw .unsafeRedirect(to: target.display, at: address) }
        do {
            try checkRedirect(url)
        } catch let error as DownloadError {
            throw error
        } catch {
            throw .refused("redirect", error, url: url)
        }
    }

    /// Returns the response for callers instead of `response`.
    package func process(_ response: DownloadResponse) async throws -> DownloadResponse {
        var response = response
        if let decrypt {
            let received = response
            response.body = try await Self.explaining({ .decryptionFailed($0, url: received.url) }) {
                try await decrypt(received.body, received)
            }
        }
        if let modifyResponse {
            let received = response
            response = try await Self.explaining({ .refused("response", $0, url: received.url) }) {
                try await modifyResponse(received)
            }
        }
        return response
    }

    private static func explaining<Value>(
        _ explain: (any Error) -> DownloadError,
        _ operation: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await operation()
        } catch is CancellationError {
            throw CancellationError()
        } catch let error as DownloadError {
            throw error
        } catch {
            throw explain(error)
        }
    }
}
