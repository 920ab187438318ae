// SPDX-License-Identifier: Apache-2.0

import TintypeCoding
import TintypeConcurrency

extension DecodeWork {
    /// Runs `body` and returns the work counted at each check for cancellation, and the error that ended it.
    static func looks(
        cancellingAt last: Int = .max,
        _ body: () throws -> Void
    ) -> (spent: [Int], error: (any Error)?) {
        let looks = Locked<[Int]>([])
        let observer = DecodeWork.Observer { spent in
            let count = looks.withLock {
                $0.append(spent)
                return $0.count
            }
            if count >= last { withUnsafeCurrentTask { $0?.cancel() } }
        }
        do {
            try DecodeWork.$observer.withValue(observer) { try body() }
            return (looks.withLock { $0 }, nil)
        } catch {
            return (looks.withLock { $0 }, error)
        }
    }
}
