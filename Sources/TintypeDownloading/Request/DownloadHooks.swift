public import FoundationEssentials

/// What a user of a downloader does with requests and responses on their way.
///
/// Each runs once for a transfer, however many callers share it, on the cooperative pool and within a task that
/// is cancelled when the last caller leaves. `file:` and `data:` URLs do not pass here. What a hook throws ends
/// the download with ``DownloadError/Code/refused`` (or ``DownloadError/Code/decryptionFailed``), with the
/// error underneath; a `CancellationError` and a `DownloadError` are passed on as they are.
public struct DownloadHooks: Sendable {
    /// Changes a request before it is sent, or refuses it by throwing.
    ///
    /// Whether two callers share a transfer is decided before, as is where a loader stores what comes: what tells
    /// users apart belongs into the headers of the request that is made.
    public var modifyRequest: (@Sendable (DownloadRequest) async throws -> DownloadRequest)?
    /// Turns the body that came into the one that is wanted.
    ///
    /// Observers of bytes are shown nothing while this is set: what arrives is not the body.
    public var decrypt: (@Sendable (Data, DownloadResponse) async throws -> Data)?
    /// Changes a complete response, decrypted if need be, or refuses it by throwing.
    ///
    /// What it returns is judged like what a server sends: a status that the request does not accept is an error,
    /// and may be tried again; so is a body without bytes.
    public var modifyResponse: (@Sendable (DownloadResponse) async throws -> DownloadResponse)?

    /// Creates hooks.
    public init(
        modifyRequest: (@Sendable (DownloadRequest) async throws -> DownloadRequest)? = nil,
        decrypt: (@Sendable (Data, DownloadResponse) async throws -> Data)? = nil,
        modifyResponse: (@Sendable (DownloadResponse) async throws -> DownloadResponse)? = nil
    ) {
        self.modifyRequest = modifyRequest
        self.decrypt = decrypt
        self.modifyResponse = modifyResponse
    }

    /// Whether a response must pass a hook.
    package var changeResponses: Bool { self.decrypt != nil || self.modifyResponse != nil }

    /// The request that is sent for `request`.
    package func prepare(_ request: DownloadRequest) async throws -> DownloadRequest {
        guard let modifyRequest else { return request }
        return try await Self.explaining(
            { .refused("request", $0, url: request.url) },
            { try await modifyRequest(request) }
        )
    }

    /// The response that callers get for `response`.
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
