// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs tasks on its own thread, and counts how often it queues them.
///
/// A task that prefers this executor is queued here each time that it resumes after a suspension or a hop. If the count
/// does not change, no suspension or hop occurred.
///
/// It is unchecked `Sendable`, because only code that holds the condition's lock accesses the state.
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

    /// Ends the thread once its queue is empty.
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
