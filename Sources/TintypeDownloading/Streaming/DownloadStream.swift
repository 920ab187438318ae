public import FoundationEssentials
public import TintypeHTTP

/// What a response says before its body.
public struct ResponseHead: Sendable {
    /// The status, one that the request accepts.
    public let status: Int
    /// The header fields, duplicates included, in their order.
    public let headers: HeaderFields
    /// Where the body comes from, after redirects.
    public let url: URL
    /// The bytes that the body will have, or `nil` where the server does not say, or compresses them.
    public let expectedBytes: Int64?
}

/// A body that is taken chunk by chunk while it arrives, and that waits for its reader.
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

/// The reader's end of a channel; when it goes away the transfer is of no use.
final class StreamSource: Sendable {
    let channel: BodyChannel
    private let downloader: DownloadActor
    private let id: UInt64

    init(channel: BodyChannel, downloader: DownloadActor, id: UInt64) {
        self.channel = channel
        self.downloader = downloader
        self.id = id
    }

    deinit {
        // One short job of the actor, which does nothing where the transfer is over.
        let (downloader, id) = (self.downloader, self.id)
        Task { await downloader.leaveStream(id) }
    }

    func head() async throws -> ResponseHead {
        try await self.cancelling { try await self.channel.head() }
    }

    func next() async throws -> Data? {
        let (chunk, mustResume) = try await self.cancelling { try await self.channel.next() }
        if mustResume { await self.downloader.resumeStream(self.id) }
        return chunk
    }

    private func cancelling<Value>(_ operation: () async throws -> Value) async throws -> Value {
        try await withTaskCancellationHandler {
            try Task.checkCancellation()
            return try await operation()
        } onCancel: {
            self.channel.cancel()
            let (downloader, id) = (self.downloader, self.id)
            Task { await downloader.leaveStream(id) }
        }
    }
}
