import FoundationEssentials

extension DownloadActor {
    /// Downloads a body chunk by chunk, to be taken while it arrives.
    ///
    /// Nobody shares the transfer, nothing of it is resumed, and hooks for responses do not see it: a request
    /// hook does. `file:` and `data:` URLs are not streamed.
    ///
    /// - Parameters:
    ///   - request: What to download. What it leaves out is as the configuration says.
    ///   - priority: How urgent it is.
    ///   - bufferSize: The bytes that are held for a reader that lags; up to one chunk more may be.
    /// - Returns: The stream, once the head of the response is here.
    /// - Throws: ``DownloadError`` when the request fails or its status is not accepted, and
    ///   `CancellationError` when the caller's task is cancelled.
    public nonisolated func stream(
        for request: DownloadRequest,
        priority: DownloadPriority = .normal,
        bufferSize: Int = 256 << 10
    ) async throws -> DownloadStream {
        let address = try ResourceAddress(request.url.absoluteString)
        try self.configuration.networkPolicy.check(address)
        guard address.scheme == .http || address.scheme == .https else {
            throw DownloadError.notStreamed(at: address)
        }
        try self.checkSendable(request)
        let channel = BodyChannel(limit: bufferSize)
        let source = await self.startStream(request, address, channel, priority)
        return DownloadStream(head: try await source.head(), source: source)
    }

    private func startStream(
        _ request: DownloadRequest,
        _ address: ResourceAddress,
        _ channel: BodyChannel,
        _ priority: DownloadPriority
    ) -> StreamSource {
        let id = self.makeID()
        self.loop.engine.stream(request, from: address, id: id, into: channel, priority: priority, owner: self)
        return StreamSource(channel: channel, downloader: self, id: id)
    }

    func leaveStream(_ id: UInt64) {
        self.loop.engine.leaveStream(id)
    }

    func resumeStream(_ id: UInt64) {
        self.loop.engine.resumeStream(id)
    }
}
