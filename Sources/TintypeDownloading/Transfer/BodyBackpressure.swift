// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// Holds transfers back while all bodies together exceed their budget, and decides which of them continue.
///
/// A transfer whose bytes do not fit is ``insert(_:)``ed; ``relieve(among:resume:)`` lets it continue. One transfer may
/// continue although no memory was released, unless whole bodies are about to release some. Otherwise two bodies that
/// each need the other one's memory would wait for ever.
///
/// Not sendable: only the loop's thread touches it, except for the budget.
final class BodyBackpressure {
    /// The bytes that a borrower must receive between two looks: one that drips would hold up all others.
    private static let leastProgress = 64 << 10

    /// Counts the bytes of all bodies.
    let budget: ByteBudget
    /// How long bytes may not come back, or a borrower not receive any, until another transfer may exceed the budget.
    private let patience: Duration
    private var waiting: [UInt64: Transfer] = [:]
    /// The one that goes on whatever is used, so that there is always one that ends.
    private var borrower: Transfer?
    /// The bytes that the borrower had received at the last check, and the time of that check.
    private var borrowerBytes = 0
    private var borrowerLook = LoopInstant.now
    /// When it must be looked again without any bytes coming back.
    private(set) var nextReview: LoopInstant?
    /// How often bytes had come back when it was last looked, and when that was first seen.
    private var returnCount: UInt64 = 0
    private var lastReturn = LoopInstant.now

    init(budget: ByteBudget, patience: Duration) {
        self.budget = budget
        self.patience = patience
    }

    /// Lets a transfer wait until its bytes fit.
    func insert(_ transfer: Transfer) {
        if self.waiting.isEmpty { self.lastReturn = .now }
        self.waiting[transfer.id] = transfer
        self.nextReview = .now
    }

    /// Takes out one that goes on.
    func remove(_ transfer: Transfer) {
        self.waiting[transfer.id] = nil
    }

    /// Takes out one that is over.
    func forget(_ transfer: Transfer) {
        if self.borrower === transfer { self.borrower = nil }
        self.waiting[transfer.id] = nil
        self.nextReview = .now
    }

    /// Lets transfers continue as far as memory was released: the most urgent first, and among equally urgent ones the
    /// oldest.
    ///
    /// - Parameters:
    ///   - running: The transfers that libcurl works on.
    ///   - resume: Lets a transfer continue, which may call ``insert(_:)`` before this returns.
    func relieve<Running: Sequence<Transfer>>(among running: @autoclosure () -> Running, resume: (Transfer) -> Void) {
        guard !self.waiting.isEmpty else {
            self.nextReview = nil
            return
        }
        // First, so that no bytes come back unseen between the look and the sleep.
        self.budget.watch()
        let now = LoopInstant.now
        let status = self.budget.status
        let hasReturned = status.returnCount != self.returnCount
        guard hasReturned || self.nextReview.map({ now >= $0 }) ?? true else { return }
        if hasReturned {
            self.returnCount = status.returnCount
            self.lastReturn = now
        }
        self.nextReview = nil
        // libcurl has yet to say that it has given up the request of one that is to be sent again.
        let ready = self.waiting.values.filter(Self.canGoOn).sorted {
            $0.audience.priority != $1.audience.priority ? $0.audience.priority > $1.audience.priority : $0.id < $1.id
        }
        guard let next = ready.first(where: { !self.continueWithinBudget($0, resume) }) else { return }
        self.nextReview = now + self.patience
        guard self.takeBack(now), !self.isReturnDue(running(), now) else { return }
        self.lend(to: next, now)
        self.proceed(next, resume)
    }

    private static func canGoOn(_ transfer: Transfer) -> Bool {
        switch transfer.machine.phase {
        case .waiting(.memory): true
        case .exchanging: if case .memory? = transfer.machine.exchange?.pause { true } else { false }
        default: false
        }
    }

    /// Lets a transfer continue if its bytes fit; returns false otherwise.
    private func continueWithinBudget(_ transfer: Transfer, _ resume: (Transfer) -> Void) -> Bool {
        guard let wait = transfer.machine.memoryWait, transfer.body.claim.grow(to: wait.wantedByteCount) else {
            return false
        }
        self.proceed(transfer, resume)
        return self.waiting[transfer.id] == nil
    }

    private func proceed(_ transfer: Transfer, _ resume: (Transfer) -> Void) {
        self.remove(transfer)
        resume(transfer)
    }

    // MARK: Beyond the budget

    /// Ends the permission of a borrower that does not use it; returns false if a borrower does.
    private func takeBack(_ now: LoopInstant) -> Bool {
        guard let borrower else { return true }
        if now < self.borrowerLook + self.patience { return false }
        let progress = borrower.body.receivedBytes - self.borrowerBytes
        self.borrowerBytes = borrower.body.receivedBytes
        self.borrowerLook = now
        guard progress < Self.leastProgress else { return false }
        borrower.body.mayExceedBudget = false
        return true
    }

    /// Whether bytes are about to come back: from work that is sure to end, or, unless nothing has come back for long,
    /// from readers of whole bodies and from transfers that go on within the budget.
    private func isReturnDue(_ running: some Sequence<Transfer>, _ now: LoopInstant) -> Bool {
        let status = self.budget.status
        if status.workCount > 0 { return true }
        guard now < self.lastReturn + self.patience else { return false }
        return status.heldCount > 0 || running.contains { self.isUnderWay($0, since: now - self.patience) }
    }

    /// Whether a transfer that has some of its body, and need not wait, has received something of late.
    private func isUnderWay(_ transfer: Transfer, since time: LoopInstant) -> Bool {
        guard transfer.machine.memoryWait == nil, transfer.body.claim.byteCount > 0 else { return false }
        return transfer.machine.exchange.map { $0.lastProgress > time } ?? false
    }

    private func lend(to transfer: Transfer, _ now: LoopInstant) {
        transfer.body.mayExceedBudget = true
        self.borrower = transfer
        self.borrowerBytes = transfer.body.receivedBytes
        self.borrowerLook = now
        // The next one waits as long again.
        self.lastReturn = now
    }
}
