import Glibc
import TintypeConcurrency
import TintypeTestSupport

/// The threads of tests that compute or block; they live as long as the process.
final class ComputingThreads: TaskExecutor {
    private let jobs = Locked<[UnownedJob]>([])
    /// Counts the jobs; allocated, since a semaphore has a place in memory.
    ///
    /// Sound: semaphores are made for many threads, and nothing ever frees it.
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
