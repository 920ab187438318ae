// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency
import TintypeTestSupport

/// A task that enters a weighted gate, and stays inside until the test calls ``leave()``.
struct Holder {
    private let entered = Gate()
    private let exit = Gate()
    private let task: Task<Void, any Error>

    init(_ gate: WeightedGate, weight: Int, client: WorkClient? = nil) {
        self.task = Task { [entered, exit] in
            try await WorkClient.$current.withValue(client) {
                try await gate.withWeight(weight) {
                    await entered.open()
                    await exit.wait()
                }
            }
        }
    }

    func isInside() async {
        await self.entered.wait()
    }

    func cancel() {
        self.task.cancel()
    }

    /// Leaves the gate after entering it.
    func leave() async throws {
        await self.exit.open()
        try await self.task.value
    }
}
