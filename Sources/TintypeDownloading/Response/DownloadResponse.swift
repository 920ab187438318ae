public import FoundationEssentials

/// What a download gave.
public struct DownloadResponse: Sendable {
    /// The body; never empty.
    public let body: Data
    /// The status, from 200 to 299, or `nil` for `file:` and `data:` URLs.
    public let status: Int?
    /// The header fields of the response; for a `data:` URL its media type as `Content-Type`.
    public let headers: HTTPHeaders
    /// Where the body came from, after redirects.
    public let url: URL
    /// What the transfer took.
    public let metrics: TransferMetrics
}
