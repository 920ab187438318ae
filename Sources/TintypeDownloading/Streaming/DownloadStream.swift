public import FoundationEssentials

/// A body that is taken chunk by chunk while it arrives, and that waits for whoever takes it.
///
/// Few bytes are held: a reader that lags makes the server wait, and the time in which it lags is not counted
/// against the server. The transfer ends when the last copy of the stream and of its iterators goes away. Each
/// chunk is handed out once; a second iterator goes on where the first one is.
public struct DownloadStream: AsyncSequence, Sendable {
    /// What the response says before its body.
    public let head: ResponseHead
    let source: StreamSource

    /// Takes the chunks.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let source: StreamSource

        /// The next chunk, never empty, or `nil` after the last.
        ///
        /// - Throws: ``DownloadError`` when the transfer fails, and `CancellationError` when the task is
        ///   cancelled, which ends the transfer.
        public mutating func next() async throws -> Data? {
            try await self.source.next()
        }
    }

    /// An iterator over what has not been taken yet.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(source: self.source)
    }
}
