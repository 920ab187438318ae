// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import TintypeConcurrency

/// A readers-writer lock around a value, for many readers on several cores.
///
/// It consists of several locks, the stripes. A reader locks one stripe, which usually no other thread uses; a writer
/// locks all. So readers seldom wait for each other. Each stripe also has a note, in which a reader can record its
/// accesses.
///
/// `Sendable` is safe although unchecked. Readers of `value` hold at least one stripe. A writer holds all stripes,
/// which excludes every reader. The stripes themselves do not change.
final class StripedLock<Value: ~Copyable & Sendable, Note: Sendable>: @unchecked Sendable {
    /// A lock with its note, padded to two cache lines, so that cores do not write to the same line.
    private struct Stripe: Sendable {
        var note: Note
        let padding: InlineArray<16, UInt64> = .init(repeating: 0)
    }

    private let value: UnsafeMutablePointer<Value>
    private let stripes: UnsafeMutablePointer<Locked<Stripe>>
    private let count: Int

    /// Creates a lock around `value` with `count` stripes, a power of two.
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

    /// Reads the value and writes the note of one stripe, concurrently with other readers.
    func read<Result: Sendable>(_ body: (borrowing Value, inout Note) -> Result) -> Result {
        // Threads are numbered in the order of their first look-up, so that the few that run at once mostly have
        // different stripes.
        let stripe = Int(cshims_thread_number()) & (self.count - 1)
        return self.stripes[stripe].withLock { body(self.value.pointee, &$0.note) }
    }

    /// Changes the value while no thread reads it.
    func write<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        self.write(from: 0, body)
    }

    /// Calls `body` with the note of each stripe in turn; readers of other stripes go on.
    func forEachNote(_ body: (inout Note) -> Void) {
        for index in 0..<self.count { self.stripes[index].withLock { body(&$0.note) } }
    }

    private func write<Result: Sendable>(from index: Int, _ body: (inout Value) -> Result) -> Result {
        guard index < self.count else { return body(&self.value.pointee) }
        return self.stripes[index].withLock { _ in self.write(from: index + 1, body) }
    }
}
