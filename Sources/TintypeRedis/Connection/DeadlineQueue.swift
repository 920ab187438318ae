// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Calls in the order of their deadlines.
///
/// Most calls have the same time budget, so a new one usually belongs at the end.
struct DeadlineQueue {
    private var calls: [RedisCall] = []
    private var head = 0

    /// The number of calls, including settled ones that were not dropped yet.
    var count: Int { self.calls.count - self.head }

    /// The next deadline.
    ///
    /// Drops settled calls before it.
    mutating func next() -> Int64? {
        while self.head < self.calls.count {
            guard self.calls[self.head].isSettled else { return self.calls[self.head].deadline }
            self.drop()
        }
        return nil
    }

    mutating func insert(_ call: RedisCall) {
        guard let last = self.calls.last, call.deadline < last.deadline else { return self.calls.append(call) }
        var (low, high) = (self.head, self.calls.count)
        while low < high {
            let middle = (low + high) / 2
            if self.calls[middle].deadline <= call.deadline { low = middle + 1 } else { high = middle }
        }
        self.calls.insert(call, at: low)
    }

    /// Removes a call whose deadline has come.
    mutating func popExpired(now: Int64) -> RedisCall? {
        guard let deadline = self.next(), deadline <= now else { return nil }
        defer { self.drop() }
        return self.calls[self.head]
    }

    /// Removes all calls that are not settled.
    mutating func removeAll() -> [RedisCall] {
        defer { self = DeadlineQueue() }
        return self.calls[self.head...].filter { !$0.isSettled }
    }

    /// Drops settled calls if there are more than `count` calls.
    mutating func dropSettled(above count: Int) {
        guard self.count > count else { return }
        self.calls.removeSubrange(..<self.head)
        self.calls.removeAll(where: \.isSettled)
        self.head = 0
    }

    private mutating func drop() {
        self.head += 1
        if self.head == self.calls.count {
            self.calls.removeAll(keepingCapacity: self.calls.capacity <= 1_024)
            self.head = 0
        } else if self.head >= 1_024, self.head * 2 >= self.calls.count {
            self.calls.removeSubrange(..<self.head)
            self.head = 0
        }
    }
}

/// The clock of deadlines, in nanoseconds since the start of the system.
enum MonotonicClock {
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

extension Duration {
    /// The duration in nanoseconds, between 0 and 30 years, so that sums with moments cannot overflow.
    var nanoseconds: Int64 {
        let limited = min(max(self, .zero), .seconds(1_000_000_000)).components
        return limited.seconds * 1_000_000_000 + limited.attoseconds / 1_000_000_000
    }
}
