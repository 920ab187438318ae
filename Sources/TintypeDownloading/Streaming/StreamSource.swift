import FoundationEssentials

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
