extension DownloadActor {
    /// Makes a download more or less urgent for all who wait for it.
    ///
    /// It matters while the transfer waits for its turn; one that runs goes on as it is. Does nothing where no
    /// equal request is in flight.
    public func setPriority(_ priority: DownloadPriority, for request: DownloadRequest) {
        self.loop.engine.setPriority(priority, of: request)
    }

    /// The same with a priority that is asked for on the loop, so that the newest one counts.
    package func updatePriority(of request: DownloadRequest, _ priority: @Sendable () -> DownloadPriority) {
        self.loop.engine.setPriority(priority(), of: request)
    }

    /// Lets no transfer start until ``resume()``; those that run go on.
    ///
    /// `file:` and `data:` URLs, which need no network, are read all the same.
    public func suspend() {
        self.loop.engine.queue.isSuspended = true
    }

    /// Lets transfers start again.
    public func resume() {
        self.loop.engine.queue.isSuspended = false
    }
}
