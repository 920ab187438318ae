// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// Counts the changes to keys, so that a read can tell whether one has happened since it began.
///
/// Keys share counters: a change to one key may count for another one as well, but none is missed.
package final class KeyChanges: Sendable {
    /// The count of a key at one moment.
    package struct Mark: Hashable, Sendable {
        package let index: Int
        fileprivate let count: UInt64
    }

    private static let counterCount = 256
    private let counts = Locked([UInt64](repeating: 0, count: KeyChanges.counterCount))

    package init() {}

    /// The count of `key` now.
    package func mark(of key: CacheKey) -> Mark {
        let index = Self.index(of: key)
        return Mark(index: index, count: self.counts.withLock { $0[index] })
    }

    package func isUnchanged(since mark: Mark) -> Bool {
        self.counts.withLock { $0[mark.index] == mark.count }
    }

    package func note(_ key: CacheKey) {
        let index = Self.index(of: key)
        self.counts.withLock { $0[index] += 1 }
    }

    /// Counts a change to all keys.
    package func noteAll() {
        self.counts.withLock { counts in
            for index in counts.indices { counts[index] += 1 }
        }
    }

    private static func index(of key: CacheKey) -> Int { abs(key.hashValue % self.counterCount) }
}
