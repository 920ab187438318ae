// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency
import TintypeTestSupport

/// An actor on its own thread that records its jobs.
actor Recorder {
    nonisolated let executor: ThreadExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }
    private(set) var values: [Int] = []
    private(set) var threadNames: Set<String> = []

    init(
        name: String = "recorder",
        startThread: @escaping POSIXThread.Starter = POSIXThread.start,
        pause: ThreadExecutor.Pause? = nil
    ) {
        self.executor = ThreadExecutor(name: name, startThread: startThread, pause: pause)
    }

    func append(_ value: Int) {
        self.preconditionIsolated()
        self.values.append(value)
        self.threadNames.insert(ThisProcess.threadName)
    }

    func run<Result: Sendable>(_ body: @Sendable (isolated Recorder) -> Result) -> Result {
        body(self)
    }
}

/// A counting semaphore for threads.
///
/// It is safe to use from any thread, as POSIX specifies.
final class Semaphore: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() {
        sem_init(self.semaphore, 0, 0)
    }

    deinit {
        sem_destroy(self.semaphore)
        self.semaphore.deallocate()
    }

    func signal() {
        sem_post(self.semaphore)
    }

    func wait() {
        while sem_wait(self.semaphore) != 0 {}
    }
}
