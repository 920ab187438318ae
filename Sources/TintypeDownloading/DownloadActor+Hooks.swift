import TintypeConcurrency

// What a transfer does away from the loop. The transfer owns the task that calls these, and cancels it.

extension DownloadActor {
    /// Lets the hook change a request and looks for the first bytes of its body, then lets the transfer go on.
    nonisolated func prepare(_ request: DownloadRequest, id: UInt64) async {
        do {
            let prepared = try await self.loop.engine.hooks.prepare(request)
            var partial: PartialBody?
            if let key = PartialBodyKey(prepared, self.configuration) {
                partial = await self.loop.engine.partials?.body(for: key)
            }
            await self.submit(prepared, id: id, partial: partial)
        } catch {
            await self.end(id, .failure(error))
        }
    }

    /// Lets the hooks have a response, then ends the transfer with what they make of it.
    nonisolated func process(_ response: DownloadResponse, id: UInt64) async {
        do {
            // What a hook holds is its own, and must not keep transfers from going on that it may be waiting for.
            var response = response
            let claim = response.claim.take()
            claim?.giveBack()
            response = try await self.loop.engine.hooks.process(response)
            claim?.set(response.body.count)
            claim?.hold()
            response.claim = claim
            await self.end(id, .success(response))
        } catch {
            await self.end(id, .failure(error))
        }
    }

    /// Returns once the first bytes of all bodies that broke off are on disk.
    ///
    /// Call it before the process ends, after the last download.
    public nonisolated func flushPartialBodies() async {
        await self.loop.engine.partials?.flush()
    }

    /// What happens to all transfers from now on.
    ///
    /// - Parameter bufferSize: The events that are kept for an observer that does not keep up; it then
    ///   loses the oldest.
    /// - Returns: A stream of its own, which ends with the downloader.
    public nonisolated func events(bufferSize: Int = 256) -> AsyncStream<DownloadEvent> {
        self.loop.engine.events.makeStream(limit: bufferSize)
    }

    private func submit(_ request: DownloadRequest, id: UInt64, partial: PartialBody?) {
        self.loop.engine.submit(id, request, partial: partial)
    }

    private func end(_ id: UInt64, _ result: Result<DownloadResponse, any Error>) {
        let engine = self.loop.engine
        guard let transfer = engine.transfers[id] else { return }
        switch result {
        case .success(let response): engine.finish(transfer, response)
        case .failure(let error): engine.fail(transfer, error)
        }
    }
}
