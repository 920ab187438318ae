// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A serial executor that runs every job on one POSIX thread of its own.
///
/// Jobs run in the order in which they were enqueued. The thread starts with the first job and sleeps on a semaphore
/// without jobs, so an idle executor costs nothing, and uses no file descriptor.
///
/// A job cannot be refused. If the system refuses the thread, jobs run one after the other on the cooperative pool
/// until the thread can start. Call ``start()`` first if work must not run there: it throws the reason.
///
/// The thread keeps its executor alive. The owner calls ``shutdown()``, or keeps the executor for the life of the
/// process.
public final class ThreadExecutor: SerialExecutor {
    private let name: String
    private let starter: POSIXThread.Starter
    package let queue: JobQueue
    private let thread = Locked<POSIXThread?>(nil)
    /// Allocated, since a semaphore has a place in memory.
    ///
    /// Sound: semaphores are made for many threads, and it lives as long as the executor.
    private nonisolated(unsafe) let wakeup = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    private let pause: Pause?

    /// Work that runs on the thread when it has had no job for `milliseconds`, at most once between two jobs.
    package typealias Pause = (milliseconds: Int, work: @Sendable () -> Void)

    /// Creates an executor whose thread is called `name` (15 bytes are kept).
    ///
    /// ```swift
    /// actor Database {
    ///     private let executor = ThreadExecutor(name: "database")
    ///     nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }
    /// }
    /// ```
    public convenience init(name: String) {
        self.init(name: name, startThread: POSIXThread.start)
    }

    package init(name: String, startThread: @escaping POSIXThread.Starter, pause: Pause? = nil) {
        self.name = name
        self.starter = startThread
        self.pause = pause
        self.queue = JobQueue(name: name)
        sem_init(self.wakeup, 0, 0)
    }

    deinit {
        sem_destroy(self.wakeup)
        self.wakeup.deallocate()
    }

    /// Starts the thread, unless it runs.
    ///
    /// ```swift
    /// let executor = ThreadExecutor(name: "database")
    /// try executor.start()
    /// ```
    ///
    /// - Throws: `ThreadError` if the system refuses it. A later call tries again.
    public func start() throws(ThreadError) {
        try self.queue.start(self)
    }

    /// Whether the thread runs.
    package var isStarted: Bool { self.queue.hasThread }

    // MARK: SerialExecutor

    /// Queues `job`; safe from any thread.
    ///
    /// Traps once the thread has ended after ``shutdown()``: the job could never run.
    public func enqueue(_ job: consuming ExecutorJob) {
        self.queue.enqueue(job, for: self)
    }

    /// A reference for `unownedExecutor`; the actor must also hold `self`.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    /// Lets `assumeIsolated` and `preconditionIsolated` succeed on the thread, even outside
    /// a job (in a C callback, for example).
    public func isIsolatingCurrentContext() -> Bool? {
        self.queue.isCurrent
    }

    /// Traps unless called on the executor's thread.
    public func checkIsolated() {
        self.queue.checkIsCurrent()
    }

    // MARK: Lifetime

    /// Runs the jobs that are already queued, then ends the thread and waits for its end.
    ///
    /// From the executor's own thread (an actor whose last reference goes away in one of its
    /// jobs) it returns at once, and the thread ends by itself. A second call does nothing.
    ///
    /// ```swift
    /// let executor = ThreadExecutor(name: "database")
    /// executor.shutdown()
    /// ```
    public func shutdown() {
        // No thread starts after that.
        if self.queue.stop(self) { self.leaveThread() }
    }

    /// The same, but jobs that come later run on the cooperative pool.
    package func retire() {
        if self.queue.retire(self) { self.leaveThread() }
    }

    private func leaveThread() {
        guard let thread = self.thread.withLock({ $0.take() }) else { return }
        if self.queue.isCurrent {
            thread.detach()
        } else {
            thread.join()
        }
    }

    private func run() {
        var batch: [UnownedJob] = []
        while true {
            switch self.queue.next(&batch) {
            case .run: self.queue.run(&batch, on: self)
            case .sleep: self.sleep()
            case .park: sem_wait(self.wakeup)
            case .end: return
            }
        }
    }

    /// Sleeps until woken, and does the work of the pause if that takes long enough.
    private func sleep() {
        if let pause {
            var end = timespec()
            // If the system clock jumps, the work only runs earlier or later.
            clock_gettime(CLOCK_REALTIME, &end)
            let nanoseconds = end.tv_nsec + pause.milliseconds * 1_000_000
            end.tv_sec += nanoseconds / 1_000_000_000
            end.tv_nsec = nanoseconds % 1_000_000_000
            guard sem_timedwait(self.wakeup, &end) != 0, errno == ETIMEDOUT else { return }
            pause.work()
        }
        sem_wait(self.wakeup)
    }
}

extension ThreadExecutor: JobThread {
    package func startThread() throws(ThreadError) {
        let thread = try self.starter(self.name) { self.run() }
        self.thread.withLock { $0 = thread }
    }

    package func wakeThread() {
        sem_post(self.wakeup)
    }
}
