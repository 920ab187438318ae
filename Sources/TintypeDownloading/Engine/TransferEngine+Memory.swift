import CCurl
import FoundationEssentials
import TintypeConcurrency

/// The transfers that wait for memory, and the one that may take more than there is.
struct MemoryShortage {
    private(set) var ids: Set<UInt64> = []
    /// The one that goes on whatever is used, so that there is always one that ends.
    private(set) var borrower: UInt64?
    /// What the borrower had received when it was last looked at, and when that was.
    private var borrowerBytes = 0
    private var borrowerLook = LoopInstant.now
    /// When it must be looked again without any bytes coming back.
    var nextReview: LoopInstant?
    /// How often bytes had come back when it was last looked, and when that was first seen.
    var returnCount: UInt64 = 0
    var lastReturn = LoopInstant.now

    mutating func insert(_ id: UInt64) {
        if self.ids.isEmpty { self.lastReturn = .now }
        self.ids.insert(id)
        self.nextReview = .now
    }

    /// The bytes that a borrower must receive between two looks: one that drips would hold up all others.
    private static let leastProgress = 64 << 10

    mutating func lend(to transfer: Transfer, now: LoopInstant) {
        self.borrower = transfer.id
        self.borrowerBytes = transfer.receivedBytes
        self.borrowerLook = now
        // The next one waits as long again.
        self.lastReturn = now
    }

    /// Whether the borrower makes such progress that the others are better off waiting for it.
    mutating func isWorthIt(_ borrower: Transfer, now: LoopInstant, patience: Duration) -> Bool {
        guard now >= self.borrowerLook + patience else { return true }
        let progress = borrower.receivedBytes - self.borrowerBytes
        self.borrowerBytes = borrower.receivedBytes
        self.borrowerLook = now
        return progress >= Self.leastProgress
    }

    /// Takes out one that goes on.
    mutating func remove(_ id: UInt64) {
        self.ids.remove(id)
    }

    /// Takes out one that is over.
    mutating func forget(_ id: UInt64) {
        if self.borrower == id { self.borrower = nil }
        self.ids.remove(id)
        self.nextReview = .now
    }
}

// Bodies that are to keep to the budget.

extension TransferEngine {
    /// Lets transfers go on that wait for memory, as far as bytes have come back: the most urgent first, and of
    /// equally urgent ones the oldest.
    ///
    /// One goes on even where nothing has come back, unless those that have whole bodies are about to give some back:
    /// two bodies that each need what the other one has would otherwise wait for ever.
    func relieveShortage() {
        guard !self.shortage.ids.isEmpty else {
            self.shortage.nextReview = nil
            return
        }
        // First, so that no bytes come back unseen between the look and the sleep.
        self.bodyBudget.watch()
        let now = LoopInstant.now
        let status = self.bodyBudget.status
        let hasReturned = status.returnCount != self.shortage.returnCount
        guard hasReturned || self.shortage.nextReview.map({ now >= $0 }) ?? true else { return }
        if hasReturned {
            self.shortage.returnCount = status.returnCount
            self.shortage.lastReturn = now
        }
        self.shortage.nextReview = nil
        // libcurl has yet to say that it has given up the request of one that is to be sent again.
        let waiting = self.shortage.ids.compactMap { self.transfers[$0] }.filter(self.canGoOn).sorted {
            $0.priority != $1.priority ? $0.priority > $1.priority : $0.id < $1.id
        }
        if let next = waiting.first(where: { !self.continueWithinBudget($0) }) { self.lend(to: next, now: now) }
    }

    private func canGoOn(_ transfer: Transfer) -> Bool {
        switch transfer.machine.phase {
        case .waiting(.memory): true
        case .exchanging(let exchange): if case .memory? = exchange.pause { true } else { false }
        default: false
        }
    }

    /// Lets a transfer go on whose bytes fit; returns false where they do not.
    private func continueWithinBudget(_ transfer: Transfer) -> Bool {
        guard let wait = transfer.machine.memoryWait, transfer.claim.grow(to: wait.wantedByteCount) else {
            return false
        }
        self.proceed(transfer)
        return !self.shortage.ids.contains(transfer.id)
    }

    /// Lets a transfer exceed the budget, if no other one does, none goes on within it, and nothing is about to come
    /// back; and in any case if nothing has come back for long.
    private func lend(to transfer: Transfer, now: LoopInstant) {
        let patience = self.configuration.memoryPatience
        self.shortage.nextReview = now + patience
        if let borrower = self.shortage.borrower.flatMap({ self.transfers[$0] }) {
            guard !self.shortage.isWorthIt(borrower, now: now, patience: patience) else { return }
            borrower.mayExceedBudget = false
        }
        let status = self.bodyBudget.status
        guard status.workCount == 0 else { return }
        if now < self.shortage.lastReturn + patience {
            guard status.heldCount == 0, !self.hasBodyUnderWay(since: now - patience) else { return }
        }
        self.shortage.lend(to: transfer, now: now)
        transfer.mayExceedBudget = true
        self.proceed(transfer)
    }

    /// Whether a transfer that has some of its body, and need not wait, has received something of late.
    private func hasBodyUnderWay(since time: LoopInstant) -> Bool {
        self.active.keys.contains { id in
            guard let transfer = self.transfers[id], transfer.machine.memoryWait == nil else { return false }
            return transfer.claim.byteCount > 0 && transfer.machine.exchange.map { $0.lastProgress > time } ?? false
        }
    }

    private func proceed(_ transfer: Transfer) {
        self.shortage.remove(transfer.id)
        self.resume(transfer)
    }
}
