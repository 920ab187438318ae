import TintypeConcurrency

/// What a transfer waits for whose bytes are not within the budget.
enum MemoryWait {
    /// Its connection is paused; so many bytes are wanted in all.
    case paused(wanted: Int, since: ContinuousClock.Instant)
    /// Its request was given up, to be sent again when there is room for so many bytes.
    case yielded(wanted: Int, since: ContinuousClock.Instant)

    var wantedByteCount: Int {
        switch self {
        case .paused(let wanted, _), .yielded(let wanted, _): wanted
        }
    }

    var start: ContinuousClock.Instant {
        switch self {
        case .paused(_, let start), .yielded(_, let start): start
        }
    }
}

// The memory of a body.

extension Transfer {
    /// Claims the memory for so many bytes more, or says what libcurl must do without it.
    func claimRoom(for count: Int) -> Verdict {
        let wanted = self.heldByteCount(adding: count)
        guard wanted > self.claim.byteCount, !self.claim.grow(to: wanted) else { return .proceed }
        guard !self.mayExceedBudget else {
            self.claim.set(wanted)
            return .proceed
        }
        defer { self.onShortage?(self) }
        // A paused stream holds up the others of its connection in libcurl. What a reader has can't be taken back.
        guard !self.isMultiplexed || self.channel != nil else {
            let wanted = max(wanted, self.expectedBytes.map { Int($0) } ?? 0)
            self.memoryWait = .yielded(wanted: wanted, since: .now)
            return .abort
        }
        self.memoryWait = .paused(wanted: wanted, since: .now)
        self.isPaused = true
        return .pause
    }

    /// Claims what is held already, whether or not it fits: the library that undoes a coding tells of its window only
    /// when it has it.
    ///
    /// Only the windows of one body exceed the budget so: all transfers have one thread, and none of them begins to
    /// decode before what it has fits.
    func claimHeldBytes() {
        let held = self.heldByteCount()
        if held > self.claim.byteCount { self.claim.set(held) }
    }

    /// The bytes of memory that the transfer takes with `count` bytes more of its body.
    private func heldByteCount(adding count: Int = 0) -> Int {
        // What is shown is copied, and kept by its decoder.
        self.body.heldByteCount(adding: count) * (self.isShown ? 2 : 1) + (self.decoder?.heldByteCount ?? 0)
    }

    /// Goes on where it was paused, or may be sent again.
    ///
    /// - Parameter bodyBytes: The bytes of the body that have come for the last request, as they are on the network.
    func endMemoryWait(bodyBytes: Int64) {
        guard let wait = self.memoryWait else { return }
        self.memoryWait = nil
        self.isPaused = false
        // The wait is not the server's: all limits go on where they stood.
        let now = ContinuousClock.now
        self.firstStartTime? += now - wait.start
        self.willWait(bodyBytes: bodyBytes, now: now)
    }

    /// Leaves everything behind that takes memory, to be sent again later.
    func yieldMemory() {
        self.dropBody()
        self.body = BodyBuffer(limit: self.limits.maximumBodySize)
        self.claim.set(0)
        self.restart()
    }
}
