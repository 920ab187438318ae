// SPDX-License-Identifier: Apache-2.0

package import TintypeConcurrency

extension POSIXThread {
    /// Starts a thread, and ends the process if that fails.
    package init(name: String, _ main: @escaping @Sendable () -> Void) {
        do throws(ThreadError) {
            self = try POSIXThread.start(name: name, main)
        } catch {
            preconditionFailure("\(error)")
        }
    }
}
