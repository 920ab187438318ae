import Glibc
import TintypeConcurrency

/// Turns `Ctrl-C` into a call: the first cancels the work, the second ends the process at once.
///
/// The signal is blocked in every thread and taken by the main one, which waits for it, so that the
/// answer is ordinary code and not a signal handler.
///
/// An asynchronous `main` can't have this: its thread ends in `dispatch_main`, which unblocks all signals there, and
/// the process dies of the first.
final class Interrupt: Sendable {
    private let received = Locked<CInt?>(nil)

    /// Blocks the signals.
    ///
    /// Must be called before other threads start: they inherit the mask.
    init() {
        var signals = Self.signals
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        // A reader that went away is seen as a failed write.
        Glibc.signal(SIGPIPE, SIG_IGN)
    }

    /// The signal that has come, or `nil`.
    var signal: CInt? { self.received.withLock { $0 } }

    /// Waits for the rest of the process's life, and calls `action` once a signal comes.
    func wait(_ action: () -> Void) -> Never {
        var signals = Self.signals
        while true {
            var number: CInt = 0
            guard sigwait(&signals, &number) == 0 else { continue }
            let isFirst = self.received.withLock { received in
                defer { received = received ?? number }
                return received == nil
            }
            guard isFirst else {
                TerminalMode.leaveAtOnce()
                _exit(128 + number)
            }
            action()
        }
    }

    private static var signals: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        return signals
    }
}
