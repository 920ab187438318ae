// When a transfer takes too long.
//
// libcurl's own limits on time and speed are means over seconds and so not exact, and know nothing of readers
// that lag.

extension Transfer {
    /// When the transfer must be looked at again, or the error that it ends with now.
    func check(
        connectedAfter connectTime: Duration,
        now: ContinuousClock.Instant
    ) -> Result<
        ContinuousClock.Instant, DownloadError
    > {
        let total = self.totalDeadline
        if let total, now >= total { return .failure(.tookTooLong(self.limits.totalTimeout ?? .zero, of: self)) }
        if self.isPaused {
            // The reader lags, not the server.
            self.lastProgress = now
            self.speedWindow = nil
        }
        let idle = self.idleDeadline(connectedAfter: connectTime, now: now)
        guard now < idle else { return .failure(self.stalledError) }
        var deadlines = [idle, total].compactMap(\.self)
        if let limit = self.limits.firstByteTimeout, !self.hasHead {
            let deadline = self.startTime + limit
            guard now < deadline else { return .failure(.noFirstByte(after: limit, of: self)) }
            deadlines.append(deadline)
        }
        if let deadline = self.speedDeadline {
            guard now < deadline || self.renewSpeedWindow(now) else { return .failure(.tooSlow(self)) }
            deadlines.append(self.speedDeadline ?? deadline)
        }
        return .success(deadlines.min() ?? idle)
    }

    /// When it must first be looked at.
    var firstDeadline: ContinuousClock.Instant {
        let limits = [
            self.limits.firstByteTimeout.map { self.startTime + $0 }, self.totalDeadline,
            self.limits.minimumSpeed.map { self.startTime + $0.period },
        ].compactMap(\.self)
        return limits.reduce(self.startTime + self.limits.timeout) { min($0, $1) }
    }

    /// The end of all tries.
    var totalDeadline: ContinuousClock.Instant? {
        // The server is not to blame, and the time is added when it is over.
        guard self.memoryWait == nil else { return nil }
        return self.limits.totalTimeout.map { (self.firstStartTime ?? self.startTime) + $0 }
    }

    var stalledError: DownloadError {
        .stalled(
            after: self.limits.timeout,
            received: self.receivedBytes,
            status: self.status,
            headers: self.responseHeaders,
            at: self.address
        )
    }

    /// When the transfer is overdue if nothing arrives until then.
    ///
    /// Connecting has a limit of its own, so the time in which it went on does not count.
    private func idleDeadline(
        connectedAfter connectTime: Duration,
        now: ContinuousClock.Instant
    ) -> ContinuousClock.Instant {
        // Looked at again in one timeout, a connection made in between is not overdue yet.
        guard connectTime > .zero else { return now + self.limits.timeout }
        return max(self.lastProgress, self.startTime + connectTime) + self.limits.timeout
    }

    private var speedDeadline: ContinuousClock.Instant? {
        guard let speed = self.limits.minimumSpeed, let speedWindow else { return nil }
        return speedWindow.start + speed.period
    }

    /// Begins a new window if the last one was fast enough.
    private func renewSpeedWindow(_ now: ContinuousClock.Instant) -> Bool {
        guard let speed = self.limits.minimumSpeed, let window = self.speedWindow else { return true }
        let received = self.metrics.bytes + Int64(self.receivedBytes)
        let needed = Double(speed.bytesPerSecond) * ((now - window.start) / .seconds(1))
        guard Double(received - window.bytes) >= needed else { return false }
        self.speedWindow = (now, received)
        return true
    }
}
