import FoundationEssentials

/// A caller that waits for a transfer.
struct TransferWaiter {
    let continuation: CheckedContinuation<DownloadResponse, any Error>
    let observer: (@Sendable (TransferProgress) -> Void)?
    let bytesObserver: (@Sendable (Data) -> Void)?
}
