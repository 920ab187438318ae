// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
@_exported public import TintypeErrors

/// A POSIX thread and its handle.
package struct POSIXThread: Sendable {
    /// Starts a thread; tests put in one that refuses.
    package typealias Starter =
        @Sendable (_ name: String, _ main: @escaping @Sendable () -> Void) throws(ThreadError) -> POSIXThread

    private let handle: UInt

    /// Starts a thread that runs `main` and ends with it.
    ///
    /// `ps -T` and debuggers show `name`, of which Linux stores 15 bytes. The caller must join or detach the thread
    /// once.
    ///
    /// - Throws: ``ThreadError`` if the system refuses the thread, or would have next to nothing left after it.
    package static func start(
        name: String,
        _ main: @escaping @Sendable () -> Void
    ) throws(ThreadError) -> POSIXThread {
        guard cshims_has_room(cshims_stack_size()) != 0 else { throw ThreadError(.outOfMemory, name: name) }
        let body = ThreadBody {
            cshims_set_thread_name(name)
            // libdispatch lowers the values of its threads, and each thread inherits the value of its creator.
            cshims_restore_nice_value()
            main()
        }
        let context = Unmanaged.passRetained(body)
        var thread = pthread_t()
        let code = pthread_create(
            &thread,
            nil,
            { context in
                if let context { Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().main() }
                return nil
            },
            context.toOpaque()
        )
        guard code == 0 else {
            context.release()
            throw code == ENOMEM ? ThreadError(.outOfMemory, name: name) : .unexplained(name: name)
        }
        return POSIXThread(handle: UInt(thread))
    }

    private init(handle: UInt) {
        self.handle = handle
    }

    /// Waits until the thread has ended.
    package func join() {
        pthread_join(pthread_t(self.handle), nil)
    }

    /// Lets the thread end on its own.
    package func detach() {
        pthread_detach(pthread_t(self.handle))
    }

    /// Lets writes of the calling thread to closed sockets and pipes fail, instead of ending the process by `SIGPIPE`.
    package static func blockBrokenPipeSignal() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Requests the shortest time slices of the scheduler for the calling thread, which then waits less when it wakes.
    ///
    /// Its share of processor time stays the same. Linux before 6.12 ignores it.
    package static func preferShortSlices() {
        // The shortest that Linux permits.
        cshims_prefer_short_slices(100_000)
    }

    /// Gives the calling thread a nice value 5 below that of the main thread, if the process has the right to do so.
    ///
    /// On busy processors, the thread then gets three times the share of a thread with the usual value. Threads that it
    /// creates do not inherit a negative value.
    package static func raisePriority() {
        cshims_lower_nice_value(5)
    }

    /// The identity of the calling thread, for comparison only; never 0.
    package static var currentID: UInt { UInt(pthread_self()) }
}

/// The body of a thread, boxed so that it can cross `pthread_create`.
private final class ThreadBody: Sendable {
    let main: @Sendable () -> Void

    init(_ main: @escaping @Sendable () -> Void) {
        self.main = main
    }
}

/// Why the system refused to start a thread.
public struct ThreadError: TintypeError, Equatable {
    /// The kinds of failure.
    public typealias Code = TintypeErrorCode

    /// The kind of failure.
    public let code: Code
    /// The cause and the remedy, in a full sentence.
    public let message: String

    /// Returns the error for a thread that `pthread_create` refused with EAGAIN, which it also does without memory for a stack.
    package static func unexplained(name: String) -> ThreadError {
        ThreadError(cshims_has_room(cshims_stack_size()) == 0 ? .outOfMemory : .tooManyThreads, name: name)
    }

    /// The refusal of the thread called `name`.
    package init(_ code: Code, name: String) {
        self.code = code
        self.message =
            switch code {
            case .outOfMemory:
                "There is no memory for the stack of the thread \(name); raise the limit of memory (ulimit -v)."
            default:
                "The system refused the thread \(name): there are too many; "
                    + "raise the limit of threads (ulimit -u, or pids.max of the cgroup)."
            }
    }
}
