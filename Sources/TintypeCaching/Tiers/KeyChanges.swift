// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// Counts the changes to keys, so that a read can tell whether one has happened since it began, or is under way.
///
/// Keys share counters: a change to one key may count for another one as well, but none is missed.
package final class KeyChanges: Sendable {
    /// The count of a key at one moment.
    package struct Mark: Hashable, Sendable {
        package let index: Int
        fileprivate let count: UInt64
    }

    private struct Counter {
        var count: UInt64 = 0
        /// The changes under way.
        var running = 0
    }

    private static let counterCount = 256
    private let counters = Locked([Counter](repeating: Counter(), count: KeyChanges.counterCount))

    package init() {}

    /// The count of `key` now.
    @inline(never)
    package func mark(of key: CacheKey) -> Mark {
        let index = Self.index(of: key)
        return Mark(index: index, count: self.counters.withLock { $0[index].count })
    }

    /// Returns whether no change has begun or ended since the mark, and none is under way.
    @inline(never)
    package func isUnchanged(since mark: Mark) -> Bool {
        self.counters.withLock { $0[mark.index].count == mark.count && $0[mark.index].running == 0 }
    }

    /// Counts a change to `key`, or to all keys, that happens at once.
    package func note(_ key: CacheKey?) { self.add(0, to: key) }

    /// Runs a change to `key`, or to all keys, that takes some time.
    func counting<Result>(_ key: CacheKey?, _ change: () async throws -> Result) async rethrows -> Result {
        self.add(1, to: key)
        defer { self.add(-1, to: key) }
        return try await change()
    }

    @inline(never)
    private func add(_ amount: Int, to key: CacheKey?) {
        let index = key.map(Self.index(of:))
        self.counters.withLock { counters in
            for index in index.map({ $0..<$0 + 1 }) ?? counters.indices {
                counters[index].count += 1
                counters[index].running += amount
            }
        }
    }

    private static func index(of key: CacheKey) -> Int { abs(key.hashValue % self.counterCount) }
}
