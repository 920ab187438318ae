import FoundationEssentials

/// A caller that waits for a transfer.
struct TransferWaiter {
    let continuation: CheckedContinuation<DownloadResponse, any Error>
    var priority: DownloadPriority
    let observer: (@Sendable (TransferProgress) -> Void)?
    var bytesObserver: (@Sendable (Data) -> Void)?
}
