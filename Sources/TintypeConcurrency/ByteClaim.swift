import Synchronization

/// Bytes of a ``ByteBudget`` that something holds: they come back when the claim goes away, or before.
///
/// Only one party at a time changes a claim.
public final class ByteClaim: Sendable {
    private let budget: ByteBudget
    private let bytes = Atomic(0)
    private let isHeld = Atomic(false)

    /// Creates a claim on nothing yet.
    public init(_ budget: ByteBudget) {
        self.budget = budget
    }

    deinit {
        self.giveBack()
    }

    /// The bytes that are claimed.
    public var byteCount: Int { self.bytes.load(ordering: .relaxed) }

    /// Claims `count` bytes in all, if no more than before or if they fit; returns false, and changes nothing, where
    /// they do not fit.
    public func grow(to count: Int) -> Bool {
        let old = self.byteCount
        guard count > old else { return true }
        guard self.budget.take(count - old, mustFit: true) else { return false }
        self.bytes.store(count, ordering: .relaxed)
        return true
    }

    /// Claims `count` bytes in all, whether or not they fit.
    public func set(_ count: Int) {
        let old = self.bytes.exchange(count, ordering: .relaxed)
        if count > old {
            _ = self.budget.take(count - old, mustFit: false)
        } else {
            self.budget.giveBack(old - count)
        }
    }

    /// Says that the bytes are complete: from now on a reader has them, and gives them back.
    public func hold() {
        guard !self.isHeld.exchange(true, ordering: .relaxed) else { return }
        self.budget.hold()
    }

    /// Says that the reader works on the bytes, and is sure to end without any more bytes of the budget.
    public func beginWork() {
        self.budget.addWork(1)
    }

    /// Ends what ``beginWork()`` has begun.
    public func endWork() {
        self.budget.addWork(-1)
    }

    /// Gives the bytes back before the claim goes away; what is done more than once has no effect.
    public func giveBack() {
        let wasHeld = self.isHeld.exchange(false, ordering: .relaxed)
        self.budget.giveBack(self.bytes.exchange(0, ordering: .relaxed), wasHeld: wasHeld)
    }
}
