// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency
import TintypeTestSupport

/// The threads of tests that compute or block, which live as long as the process.
final class ComputingThreads: TaskExecutor {
    private let jobs = Locked<[UnownedJob]>([])
    /// The semaphore that counts the jobs, which is allocated because a semaphore needs a fixed address.
    ///
    /// Sharing it is safe, because semaphores are made for several threads and this one is never freed.
    private nonisolated(unsafe) let count = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init(count: Int) {
        sem_init(self.count, 0, 0)
        for number in 0..<count { POSIXThread(name: "test-\(number)") { self.run() }.detach() }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.jobs.withLock { $0.append(job) }
        sem_post(self.count)
    }

    private func run() {
        while true {
            while sem_wait(self.count) != 0 {}
            let job = self.jobs.withLock { $0.removeFirst() }
            job.runSynchronously(on: self.asUnownedTaskExecutor())
        }
    }
}
