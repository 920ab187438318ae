// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// An event of a transfer.
///
/// Each transfer begins with one ``Kind/started`` and ends with one of ``Kind/finished(_:)``, ``Kind/failed(_:)`` and
/// ``Kind/cancelled``. A request that the network policy refuses has only ``Kind/refused(_:)``, and no transfer.
public struct DownloadEvent: Sendable {
    /// The kinds of events.
    public enum Kind: Sendable {
        /// The network policy has refused the request before there was a transfer.
        case refused(DownloadError)
        /// The transfer was requested.
        case started
        /// The head of a response has arrived, also that of a redirect.
        case receivedHead(status: Int)
        /// The transfer has failed, and is retried after this time.
        case retrying(after: Duration, DownloadError)
        /// The body is complete.
        case finished(TransferMetrics)
        /// The transfer has failed.
        case failed(DownloadError)
        /// The last caller has left.
        case cancelled
    }

    /// The number of the transfer; 0 for a refused request.
    public let transferID: UInt64
    /// The URL of the request, without credentials.
    public let url: URL
    /// The kind of the event.
    public let kind: Kind
}
