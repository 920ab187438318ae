public import FoundationEssentials

/// Something that happened to a transfer.
///
/// A request that the network policy refuses becomes no transfer: ``Kind/refused(_:)`` is all that happens.
/// Each transfer begins with one ``Kind/started`` and ends with one of ``Kind/finished(_:)``,
/// ``Kind/failed(_:)`` and ``Kind/cancelled``; an observer that began to listen in between sees the rest.
public struct DownloadEvent: Sendable {
    /// What happened.
    public enum Kind: Sendable {
        /// The network policy refused it before there was a transfer.
        case refused(DownloadError)
        /// It was asked for.
        case started
        /// The head of a response came, that of a redirect included.
        case receivedHead(status: Int)
        /// It failed, and is tried again so much later.
        case retrying(after: Duration, DownloadError)
        /// Its body is complete.
        case finished(TransferMetrics)
        /// It gave no body.
        case failed(DownloadError)
        /// No caller waited any more.
        case cancelled
    }

    /// Which of the downloader's transfers it is about; 0 for what became none.
    public let transferID: UInt64
    /// What was asked for, without credentials.
    public let url: URL
    /// What happened.
    public let kind: Kind
}
