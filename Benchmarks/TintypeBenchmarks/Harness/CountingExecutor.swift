import Foundation

/// Runs tasks on one thread of its own and counts how often they are queued.
///
/// A task that prefers it is queued here each time that it comes back from a suspension or a
/// hop, so a count that stands still proves that there was none.
///
/// Sendable although unchecked: the state is touched under the condition's lock only.
final class CountingExecutor: TaskExecutor, @unchecked Sendable {
    private let condition = NSCondition()
    private var jobs: [UnownedJob] = []
    private var total = 0
    private var isStopping = false

    init() {
        Thread { self.run() }.start()
    }

    /// How many jobs there were so far.
    var count: Int { self.condition.withLock { self.total } }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.condition.withLock {
            self.jobs.append(job)
            self.total += 1
            self.condition.signal()
        }
    }

    /// Ends the thread once nothing is queued.
    func stop() {
        self.condition.withLock {
            self.isStopping = true
            self.condition.signal()
        }
    }

    private func run() {
        while let job = self.next() { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    private func next() -> UnownedJob? {
        self.condition.withLock {
            while self.jobs.isEmpty, !self.isStopping { self.condition.wait() }
            return self.jobs.isEmpty ? nil : self.jobs.removeFirst()
        }
    }
}
