// SPDX-License-Identifier: Apache-2.0

package import TintypeConcurrency

/// A system that refuses some threads and starts all later ones.
package final class ThreadRefusals: Sendable {
    private let rest: Locked<Int>
    private let code: ThreadError.Code

    /// Refuses the next `count` threads.
    package init(_ count: Int, _ code: ThreadError.Code = .tooManyThreads) {
        self.rest = Locked(count)
        self.code = code
    }

    /// Refuses the next `count` threads from now on.
    package func refuse(_ count: Int) {
        self.rest.withLock { $0 = count }
    }

    package func start(name: String, main: @escaping @Sendable () -> Void) throws(ThreadError) -> POSIXThread {
        let isRefused = self.rest.withLock { rest in
            defer { rest = max(0, rest - 1) }
            return rest > 0
        }
        if isRefused { throw ThreadError(self.code, name: name) }
        return try POSIXThread.start(name: name, main)
    }
}
