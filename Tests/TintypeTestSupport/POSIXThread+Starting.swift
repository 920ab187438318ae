package import TintypeConcurrency

extension POSIXThread {
    /// Starts a thread of a test, which can't go on without it.
    package init(name: String, _ main: @escaping @Sendable () -> Void) {
        do throws(ThreadError) {
            self = try POSIXThread.start(name: name, main)
        } catch {
            preconditionFailure("\(error)")
        }
    }
}
