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
        if !self.body.isEmpty { claim.hold() }
        copy.claim = claim
        return copy
    }
}

/// How much of a body has been received.
public struct TransferProgress: Sendable, Hashable {
    /// The bytes of the body so far.
    public let receivedBytes: Int64
    /// The bytes that the body will have, or `nil` where the server does not say.
    ///
    /// It is also `nil` for a body that comes compressed: its declared length counts other bytes.
    public let expectedBytes: Int64?

    /// Creates a progress.
    public init(receivedBytes: Int64, expectedBytes: Int64?) {
        self.receivedBytes = receivedBytes
        self.expectedBytes = expectedBytes
    }

    /// The part that has been received, from 0 to 1, or `nil` where the length is unknown.
    public var fractionCompleted: Double? {
        guard let expectedBytes, expectedBytes > 0 else { return nil }
        return min(1, max(0, Double(self.receivedBytes) / Double(expectedBytes)))
    }
}
