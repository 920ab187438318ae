import CTintypeShims
import TintypeConcurrency

/// A value that many threads read at once and that one changes at a time.
///
/// There are several locks, the stripes. A reader takes one of them, mostly one that no other thread
/// is using; a writer takes all. So readers do not wait for each other, on as many cores as there are
/// stripes, and each has in its stripe some state of its own to note what it read.
///
/// Sendable although unchecked: `value` is read by threads that hold at least one stripe, and written only by one
/// that holds all of them, which excludes every reader. The stripes themselves do not change.
final class StripedLock<Value: ~Copyable & Sendable, Note: Sendable>: @unchecked Sendable {
    /// One to a pair of cache lines, so that cores do not share what they write.
    private struct Stripe: Sendable {
        var note: Note
        let padding: InlineArray<16, UInt64> = .init(repeating: 0)
    }

    private let value: UnsafeMutablePointer<Value>
    private let stripes: UnsafeMutablePointer<Locked<Stripe>>
    private let count: Int

    /// Puts `value` behind `count` locks, a power of two, each with a note.
    init(_ value: consuming Value, count: Int, note: Note) {
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
        self.stripes = .allocate(capacity: count)
        for index in 0..<count { (self.stripes + index).initialize(to: Locked(Stripe(note: note))) }
        self.count = count
    }

    deinit {
        self.stripes.deinitialize(count: self.count)
        self.stripes.deallocate()
        self.value.deinitialize(count: 1)
        self.value.deallocate()
    }

    /// Reads the value, and writes the note of one stripe, beside other readers.
    func read<Result: Sendable>(_ body: (borrowing Value, inout Note) -> Result) -> Result {
        // Threads are numbered in the order of their first look-up, so that the few that run at once
        // mostly have stripes of their own.
        let stripe = Int(cshims_thread_number()) & (self.count - 1)
        return self.stripes[stripe].withLock { body(self.value.pointee, &$0.note) }
    }

    /// Changes the value while no thread reads it.
    func write<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        self.write(from: 0, body)
    }

    /// Visits the note of each stripe in turn, while others may read.
    func forEachNote(_ body: (inout Note) -> Void) {
        for index in 0..<self.count { self.stripes[index].withLock { body(&$0.note) } }
    }

    private func write<Result: Sendable>(from index: Int, _ body: (inout Value) -> Result) -> Result {
        guard index < self.count else { return body(&self.value.pointee) }
        return self.stripes[index].withLock { _ in self.write(from: index + 1, body) }
    }
}
