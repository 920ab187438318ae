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
    private struct State {
        var signal: CInt?
        /// The seconds that the work may take to end; less than the ten that container runtimes grant a process.
        var patience = 5
        var endsInOrder = false
        var onHangup: (@Sendable () -> Void)?
    }

    private let takesHangup: Bool
    private let state = Locked(State())

    /// Blocks the signals; `SIGHUP` only if `takesHangup` is true, otherwise it ends the process as usual.
    ///
    /// Must be called before other threads start: they inherit the mask.
    init(takesHangup: Bool) {
        self.takesHangup = takesHangup
        var signals = Self.signals(withHangup: takesHangup)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        // A reader that went away is seen as a failed write.
        Glibc.signal(SIGPIPE, SIG_IGN)
    }

    /// Lets work that runs until a signal take `patience` seconds to end after it.
    ///
    /// An end within that time is a success. `onHangup` is called for each `SIGHUP` on the main thread.
    func allowOrderlyEnd(patience: Int, onHangup: @escaping @Sendable () -> Void) {
        self.state.withLock { state in
            state.patience = patience
            state.endsInOrder = true
            state.onHangup = onHangup
        }
    }

    /// Returns the exit code of a process whose work has ended with `code`.
    ///
    /// As shells do: 128 and the number of the signal, unless work that runs until a signal has ended in order.
    func exitCode(_ code: CInt) -> CInt {
        self.state.withLock { $0.endsInOrder ? code : $0.signal.map { 128 + $0 } ?? code }
    }

    /// Waits for the rest of the process's life, and calls `action` when the first signal comes.
    ///
    /// The second signal ends the process at once. So does the end of the patience: the work may be within a system
    /// call, such as a write to a pipe that nobody reads.
    func wait(_ action: () -> Void) -> Never {
        let first = self.nextEnd()
        let seconds = self.state.withLock { state in
            state.signal = first
            return state.patience
        }
        action()
        // A hang-up stays blocked, and has no effect any more.
        var signals = Self.signals(withHangup: false)
        var patience = timespec(tv_sec: seconds, tv_nsec: 0)
        var second: CInt
        repeat {
            second = sigtimedwait(&signals, nil, &patience)
        } while second < 0 && errno == EINTR
        TerminalMode.leaveAtOnce()
        _exit(128 + (second > 0 ? second : first))
    }

    /// Waits for a signal that ends the process, and reports hang-ups until then.
    private func nextEnd() -> CInt {
        var signals = Self.signals(withHangup: self.takesHangup)
        while true {
            var signal: CInt = 0
            guard sigwait(&signals, &signal) == 0 else { continue }
            guard signal == SIGHUP else { return signal }
            let onHangup = self.state.withLock { $0.onHangup }
            onHangup?()
        }
    }

    private static func signals(withHangup: Bool) -> sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        if withHangup { sigaddset(&signals, SIGHUP) }
        return signals
    }
}
