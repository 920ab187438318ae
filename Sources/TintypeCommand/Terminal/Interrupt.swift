// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency

/// Turns `Ctrl-C` into a call: the first cancels the work, the second ends the process at once.
///
/// The signal is blocked in every thread and taken by the main one, which waits for it, so that the
/// answer is ordinary code and not a signal handler.
///
/// An asynchronous `main` cannot have this: its thread ends in `dispatch_main`, which unblocks all signals there, and
/// the process dies of the first.
final class Interrupt: Sendable {
    /// The seconds that the work may take to end; less than the ten that container runtimes grant a process.
    private static let patience = 5
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

    /// Waits for the rest of the process's life, and calls `action` when the first signal comes.
    ///
    /// The second signal ends the process at once. So does the end of ``patience``: the work may be within a system call,
    /// such as a write to a pipe that nobody reads.
    func wait(_ action: () -> Void) -> Never {
        var signals = Self.signals
        var first: CInt = 0
        while sigwait(&signals, &first) != 0 {}
        self.received.withLock { $0 = first }
        action()
        var patience = timespec(tv_sec: Self.patience, tv_nsec: 0)
        var second: CInt
        repeat {
            second = sigtimedwait(&signals, nil, &patience)
        } while second < 0 && errno == EINTR
        TerminalMode.leaveAtOnce()
        _exit(128 + (second > 0 ? second : first))
    }

    private static var signals: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        return signals
    }
}
