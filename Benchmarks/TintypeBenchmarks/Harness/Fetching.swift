// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Runs one asynchronous operation again and again, a fixed number at once.
enum Fetching {
    /// Runs `operation` `count` times, `width` at a time, with the number of its lane.
    static func measure(
        count: Int,
        width: Int,
        _ operation: @escaping @Sendable (_ lane: Int) async throws -> Void
    ) async throws -> Measurement {
        let counter = Counter()
        return try await Measurement.of(operations: count) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for lane in 0..<width {
                    group.addTask {
                        while counter.next() < count { try await operation(lane) }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    /// Numbers the operations of all lanes together, so that each lane takes the next one when it is free.
    private final class Counter: Sendable {
        private let value = Atomic<Int>(0)

        func next() -> Int {
            self.value.wrappingAdd(1, ordering: .relaxed).oldValue
        }
    }
}
