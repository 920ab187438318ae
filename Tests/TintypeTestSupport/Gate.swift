// SPDX-License-Identifier: Apache-2.0

/// A one-shot gate that tests open, and that tasks wait for.
public actor Gate {
    private var isOpen = false
    private var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    private var waiterCount = 0

    public init() {}

    /// Opens the gate for current and future waiters.
    public func open() {
        self.isOpen = true
        let waiters = self.waiters.values
        self.waiters = [:]
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when the gate is open.
    public func wait() async {
        await self.wait(as: self.makeWaiter())
    }

    /// Returns when the gate is open.
    ///
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    public func waitUnlessCancelled() async throws {
        let waiter = self.makeWaiter()
        try await withTaskCancellationHandler {
            // A cancellation after this check finds the waiter, because its handler has to wait for the actor.
            try Task.checkCancellation()
            await self.wait(as: waiter)
            try Task.checkCancellation()
        } onCancel: {
            Task { await self.resume(waiter) }
        }
    }

    private func makeWaiter() -> Int {
        self.waiterCount += 1
        return self.waiterCount
    }

    private func wait(as waiter: Int) async {
        if self.isOpen { return }
        await withCheckedContinuation { self.waiters[waiter] = $0 }
    }

    private func resume(_ waiter: Int) {
        self.waiters.removeValue(forKey: waiter)?.resume()
    }
}
