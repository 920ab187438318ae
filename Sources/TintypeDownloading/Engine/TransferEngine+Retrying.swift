import FoundationEssentials

// Another try, and what is kept of one that failed.

extension TransferEngine {
    /// Decides what becomes of a transfer whose request failed: another try, or the end.
    func settle(_ transfer: Transfer, _ error: DownloadError) {
        if transfer.mustRestart || transfer.failedResuming(error) {
            self.forgetPart(of: transfer)
            transfer.dropBody()
            transfer.restart()
            self.submit(transfer)
            return
        }
        guard self.canRetry(transfer), let delay = self.delay(before: transfer, error) else {
            self.fail(transfer, error)
            return
        }
        transfer.keepWhatCanBeResumed()
        transfer.restart()
        transfer.attempts += 1
        transfer.metrics.retryCount += 1
        self.counters.retried += 1
        self.tell(transfer, .retrying(after: delay, error))
        self.submit(transfer, after: delay)
    }

    private func canRetry(_ transfer: Transfer) -> Bool {
        // A reader has seen the head, and perhaps more.
        transfer.channel == nil || !transfer.hasHead || !transfer.isSuccess
    }

    private func delay(before transfer: Transfer, _ error: DownloadError) -> Duration? {
        let policy = self.configuration.retryPolicy
        guard policy.maximumAttempts > 1,
            let delay = policy.delay(
                after: error,
                attempts: transfer.attempts,
                date: self.environment.date(),
                random: self.environment.random()
            )
        else { return nil }
        let now = ContinuousClock.now
        if let deadline = transfer.totalDeadline, now + delay >= deadline { return nil }
        return self.budget.takeTry(now: now) ? delay : nil
    }

    /// Whether it is worth looking for the first bytes of a body.
    func mayHavePart(of transfer: Transfer) -> Bool {
        guard let partials, transfer.canResume, let key = PartialBodyKey(transfer.request, self.configuration) else {
            return false
        }
        return partials.mayHave(key)
    }

    /// Puts the first bytes of a body that is not whole into the store, and takes those of a whole one out.
    func keepPart(of transfer: Transfer, _ result: Result<DownloadResponse, any Error>) {
        guard let partials else { return }
        switch result {
        case .success: self.forgetPart(of: transfer)
        case .failure(let error):
            let cause = error as? DownloadError
            // Asking for a part may be what was refused, and would be every time.
            if let cause, Self.isRefusal(cause, ofRest: transfer.hasAskedForRest) { self.forgetPart(of: transfer) }
            // Limits and refusals would come again.
            let isBroken = error is CancellationError || cause.map(Self.mayGoOn) ?? false
            guard isBroken, let key = PartialBodyKey(transfer.request, self.configuration),
                let partial = transfer.takePartialBody()
            else { return }
            partials.insert(partial, for: key)
        }
    }

    private static func isRefusal(_ error: DownloadError, ofRest: Bool) -> Bool {
        switch error.code {
        case .invalidResponse: true
        case .badStatus where ofRest: true
        case .badStatus: error.status.map { 400..<500 ~= $0 && $0 != 408 && $0 != 429 } ?? false
        default: false
        }
    }

    private static func mayGoOn(_ error: DownloadError) -> Bool {
        [.connectionLost, .bodyCutShort, .timedOut, .tooSlow].contains(error.code)
    }

    private func forgetPart(of transfer: Transfer) {
        guard let partials, transfer.usedStoredPart,
            let key = PartialBodyKey(transfer.request, self.configuration)
        else { return }
        transfer.usedStoredPart = false
        // One short job of the store, which ends by itself.
        Task { await partials.remove(key) }
    }
}
