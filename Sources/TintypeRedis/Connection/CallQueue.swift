// SPDX-License-Identifier: Apache-2.0

/// Calls in the order in which they came; settled ones are dropped on the way.
struct CallQueue {
    private var calls: [RedisCall] = []
    private var head = 0

    /// The number of calls, including settled ones that were not dropped yet.
    var count: Int { self.calls.count - self.head }

    var isEmpty: Bool { self.count == 0 }

    mutating func append(_ call: RedisCall) {
        self.calls.append(call)
    }

    /// Removes the first call that is not settled.
    mutating func popFirst() -> (call: RedisCall, command: RedisCommand, needsAsking: Bool)? {
        while self.head < self.calls.count {
            let call = self.calls[self.head]
            self.head += 1
            self.compact()
            if let next = call.commandToSend() { return (call, next.command, next.needsAsking) }
        }
        return nil
    }

    /// Drops settled calls if there are more than `count` calls.
    mutating func dropSettled(above count: Int = 0) {
        guard self.count > count else { return }
        self.calls.removeSubrange(..<self.head)
        self.head = 0
        self.calls.removeAll(where: \.isSettled)
    }

    /// Removes all calls that are not settled.
    mutating func removeAll() -> [RedisCall] {
        self.dropSettled()
        defer { self.calls = [] }
        return self.calls
    }

    private mutating func compact() {
        if self.head == self.calls.count {
            self.calls.removeAll(keepingCapacity: self.calls.capacity <= 1_024)
            self.head = 0
        } else if self.head >= 1_024, self.head * 2 >= self.calls.count {
            self.calls.removeSubrange(..<self.head)
            self.head = 0
        }
    }
}
