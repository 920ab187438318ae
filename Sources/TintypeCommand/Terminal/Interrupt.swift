import Glibc
import TintypeConcurrency

/// Turns `Ctrl-C` into a call: the first cancels the work, the second ends the process at once.
///
/// The signal is blocked in every thread and taken by one that waits for it, so that the
/// answer is ordinary code and not a signal handler.
final class Interrupt: Sendable {
    private struct State {
        var hasFired = false
        var action: (@Sendable () -> Void)?
    }

    private let state = Locked(State())

    /// Starts to wait.
    ///
    /// Must be called before other threads start: they inherit the mask.
    init() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        // A reader that went away is seen as a failed write.
        signal(SIGPIPE, SIG_IGN)
        POSIXThread(name: "interrupt") { [self] in self.wait() }.detach()
    }

    /// Whether the signal has come.
    var hasFired: Bool { self.state.withLock { $0.hasFired } }

    /// Calls `action` once the signal comes, or now if it came before.
    func onSignal(_ action: @escaping @Sendable () -> Void) {
        let isLate = self.state.withLock { state in
            state.action = action
            return state.hasFired
        }
        if isLate { action() }
    }

    private func wait() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        while true {
            var number: CInt = 0
            guard sigwait(&signals, &number) == 0 else { continue }
            let (wasFired, action) = self.state.withLock { state in
                defer { state.hasFired = true }
                return (state.hasFired, state.action)
            }
            if wasFired { _exit(128 + number) }
            action?()
        }
    }
}
