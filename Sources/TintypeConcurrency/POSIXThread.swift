import CShims
import Glibc

/// A POSIX thread and its handle.
package struct POSIXThread: Sendable {
    private let handle: UInt

    /// Starts a thread that runs `main` and ends with it.
    ///
    /// `name` is what `ps -T` and debuggers show; Linux keeps 15 bytes of it. The thread
    /// must be joined or detached once.
    package init(name: String, _ main: @escaping @Sendable () -> Void) {
        let body = ThreadBody {
            cshims_set_thread_name(name)
            main()
        }
        var thread = pthread_t()
        let code = pthread_create(
            &thread,
            nil,
            { context in
                if let context { Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().main() }
                return nil
            },
            Unmanaged.passRetained(body).toOpaque()
        )
        precondition(code == 0, "pthread_create failed with \(code): the process has too many threads")
        self.handle = UInt(thread)
    }

    /// Waits until the thread has ended.
    package func join() {
        pthread_join(pthread_t(self.handle), nil)
    }

    /// Lets the thread end on its own.
    package func detach() {
        pthread_detach(pthread_t(self.handle))
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
