public import FoundationEssentials
package import TintypeConcurrency
public import TintypeHTTP

/// What a download gave.
public struct DownloadResponse: Sendable {
    /// The body.
    ///
    /// It is never empty, unless the request was for a head alone or the status is one outside of 200
    /// to 299 that the request accepts, such as 304.
    public var body: Data
    /// The status, or `nil` for `file:` and `data:` URLs.
    public var status: Int?
    /// The header fields of the response, duplicates included, in their order; for a `data:` URL its media
    /// type as `Content-Type`.
    public var headers: HeaderFields
    /// Where the body came from, after redirects.
    public let url: URL
    /// What the transfer took.
    public let metrics: TransferMetrics
    /// When the request that gave this response was sent.
    public let requestTime: Date
    /// When the head of the response had arrived; RFC 9111 section 4.2.3 counts its age from there.
    public let responseTime: Date
    /// What counts the bytes of the body, until it goes away or gives them back.
    package var claim: ByteClaim?

    /// The same, whose body counts in `budget`.
    package func claimed(in budget: ByteBudget) -> DownloadResponse {
        var copy = self
        let claim = ByteClaim(budget)
        claim.set(self.body.count)
        claim.hold()
        copy.claim = claim
        return copy
    }
}
