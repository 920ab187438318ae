// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
package import TintypeConcurrency
public import TintypeHTTP

/// The response of a download.
public struct DownloadResponse: Sendable {
    /// The body.
    ///
    /// It is empty only for a request of a head, or for an acceptable status outside of 200 to 299, such as 304.
    public var body: Data
    /// The status, or `nil` for `file:` and `data:` URLs.
    public var status: Int?
    /// The header fields of the response, duplicates included, in their order; for a `data:` URL its media
    /// type as `Content-Type`.
    public var headers: HeaderFields
    /// The URL of the body, after redirects.
    public let url: URL
    /// The durations of the transfer.
    public let metrics: TransferMetrics
    /// The date at which the request was sent.
    public let requestTime: Date
    /// The date at which the head of the response had arrived, from which its age counts (RFC 9111, 4.2.3).
    public let responseTime: Date
    /// The claim of the body on the byte budget.
    package var claim: ByteClaim?

    /// Returns the response with a body that counts in `budget`.
    package func claimed(in budget: ByteBudget) -> DownloadResponse {
        var copy = self
        let claim = ByteClaim(budget)
        claim.set(self.body.count)
        if !self.body.isEmpty { claim.hold() }
        copy.claim = claim
        return copy
    }
}

/// The progress of a transfer.
public struct TransferProgress: Sendable, Hashable {
    /// The number of received bytes of the body.
    public let receivedBytes: Int64
    /// The number of bytes of the body, or `nil` if the server does not declare it.
    ///
    /// It is also `nil` for a compressed body, whose declared length counts other bytes.
    public let expectedBytes: Int64?

    /// Creates a progress.
    ///
    /// ```swift
    /// let progress = TransferProgress(receivedBytes: 512, expectedBytes: 2_048)
    /// print(progress.fractionCompleted ?? 0)  // 0.25
    /// ```
    public init(receivedBytes: Int64, expectedBytes: Int64?) {
        self.receivedBytes = receivedBytes
        self.expectedBytes = expectedBytes
    }

    /// The received fraction, from 0 to 1, or `nil` if the length is unknown.
    public var fractionCompleted: Double? {
        guard let expectedBytes, expectedBytes > 0 else { return nil }
        return min(1, max(0, Double(self.receivedBytes) / Double(expectedBytes)))
    }
}
