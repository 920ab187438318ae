// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency

/// A serial executor that is also the event loop of one transfer engine.
///
/// Its thread runs jobs and moves transfers in turn. In between it sleeps in the wait of the multi handle, which both
/// sockets and jobs end. The thread starts with ``start()`` or the first job, and keeps the loop alive until
/// ``stop()``.
///
/// A job cannot be refused. If the system refuses the thread or its resources, jobs run one after the other on the
/// cooperative pool. No transfer exists then, because ``start()`` precedes each of them.
final class CurlLoop: SerialExecutor {
    private static let threadName = "tintype-curl"
    private static let batchesBeforeSockets = 8

    /// Only jobs of the actor may use it, except for `wake()`.
    let engine: TransferEngine
    let queue = JobQueue(name: CurlLoop.threadName)
    private let starter: POSIXThread.Starter
    private let thread = Locked<POSIXThread?>(nil)
    private let didEnd: (@Sendable () -> Void)?

    init(
        engine: TransferEngine,
        startThread: @escaping POSIXThread.Starter = POSIXThread.start,
        didEnd: (@Sendable () -> Void)? = nil
    ) {
        self.engine = engine
        self.starter = startThread
        self.didEnd = didEnd
    }

    /// Opens the engine and starts the thread, unless that was done.
    ///
    /// - Throws: ``LoopStartError``. A later call tries again.
    func start() throws(LoopStartError) {
        try self.queue.start(self)
    }

    // MARK: SerialExecutor

    /// Queues `job`; safe from any thread.
    ///
    /// Traps once the thread has ended: the job could never run.
    func enqueue(_ job: consuming ExecutorJob) {
        self.queue.enqueue(job, for: self)
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    func isIsolatingCurrentContext() -> Bool? {
        self.queue.isCurrent
    }

    func checkIsolated() {
        self.queue.checkIsCurrent()
    }

    // MARK: Lifetime

    /// Lets the thread run what is queued and then end; does not wait for that.
    ///
    /// The actor calls it in `deinit`, which may run anywhere: on a thread of the
    /// cooperative pool, which must not wait, or in one of the loop's own jobs.
    func stop() {
        _ = self.queue.stop(self)
        self.thread.withLock { $0.take() }?.detach()
    }

    /// Lets the thread end once it has run what is queued; jobs that come later run on the cooperative pool.
    func retire() {
        _ = self.queue.retire(self)
    }

    /// Waits for the end of the thread, if it is retired.
    func join() {
        guard let thread = self.thread.withLock({ $0.take() }) else { return }
        thread.join()
        self.engine.closeWakeup()
    }

    private func run() {
        defer { self.didEnd?() }
        // All loads wait for this thread, which does little at a time: it must not stand behind others that compute.
        POSIXThread.preferShortSlices()
        var batch: [UnownedJob] = []
        var batchesInRow = 0
        while true {
            switch self.queue.next(&batch) {
            case .run:
                self.queue.run(&batch, on: self)
                batchesInRow += 1
                // Jobs that bring new jobs must not keep the sockets waiting.
                if batchesInRow % Self.batchesBeforeSockets == 0 { self.engine.poll() }
            case .sleep:
                batchesInRow = 0
                self.engine.wait()
            case .park:
                // The engine is the task's.
                self.engine.park()
                continue
            case .end: return
            }
            // Moving transfers resumes tasks, whose jobs come back here: look before sleeping.
            self.engine.drive()
        }
    }
}

extension CurlLoop: JobThread {
    /// libcurl and the new thread call the queue only after this function returns.
    func startThread() throws(LoopStartError) {
        if !self.engine.isOpen { try self.engine.open() }
        do throws(ThreadError) {
            let thread = try self.starter(Self.threadName) { self.run() }
            self.thread.withLock { $0 = thread }
        } catch {
            throw .thread(error)
        }
    }

    func wakeThread() {
        self.engine.wake()
    }
}

/// Why the loop of a downloader cannot be started now.
enum LoopStartError: Error {
    /// The process or the system has no file descriptor left.
    case tooManyOpenFiles
    /// The system, or libcurl, has no memory.
    case outOfMemory
    /// The system refuses the thread.
    case thread(ThreadError)

    /// Returns the error for a descriptor that the system refused with this `errno`.
    init(refused code: CInt) {
        self = code == EMFILE || code == ENFILE ? .tooManyOpenFiles : .outOfMemory
    }
}
