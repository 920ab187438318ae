import Synchronization
import TintypeConcurrency

/// A serial executor that is also the event loop of one transfer engine.
///
/// Its thread runs jobs and moves transfers in turn, and between them sleeps in the wait of
/// the multi handle, so that sockets and jobs end the same sleep. The thread starts with the
/// first job and keeps the loop alive until ``stop()``.
final class CurlLoop: SerialExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var isStarted = false
        /// Whether the thread waits, or is about to, and so must be woken.
        var isSleeping = false
        var isStopping = false
        var hasEnded = false
    }

    private enum EnqueueAction {
        case none
        case start
        case wake
        case trap
    }

    private enum Step {
        case run
        case sleep
        case end
    }

    private static let batchesBeforeSockets = 8

    /// Only jobs of the actor may use it, except for `wake()`.
    let engine: TransferEngine
    private let state = Locked(State())
    /// The identity of the running thread, or 0; written by that thread only.
    private let runner = Atomic<UInt>(0)
    private let didEnd: (@Sendable () -> Void)?

    init(engine: TransferEngine, didEnd: (@Sendable () -> Void)? = nil) {
        self.engine = engine
        self.didEnd = didEnd
    }

    // MARK: SerialExecutor

    /// Queues `job`; safe from any thread.
    ///
    /// Traps once the thread has ended: the job could never run.
    func enqueue(_ job: consuming ExecutorJob) {
        // The job may run, and end the actor and this loop with it, before the wake below.
        let retained = Unmanaged.passRetained(self)
        defer { retained.release() }
        let job = UnownedJob(job)
        let action = self.state.withLock { state -> EnqueueAction in
            guard !state.hasEnded else { return .trap }
            state.jobs.append(job)
            guard state.isStarted else {
                state.isStarted = true
                return .start
            }
            defer { state.isSleeping = false }
            return state.isSleeping ? .wake : .none
        }
        switch action {
        case .none: break
        case .start: POSIXThread(name: "tintype-curl") { self.run() }.detach()
        case .wake: self.engine.wake()
        case .trap: preconditionFailure("a job was enqueued on a stopped download loop")
        }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    func isIsolatingCurrentContext() -> Bool? {
        self.runner.load(ordering: .relaxed) == POSIXThread.currentID
    }

    func checkIsolated() {
        precondition(self.isIsolatingCurrentContext() == true, "not on the thread of the download loop")
    }

    // MARK: Lifetime

    /// Lets the thread run what is queued and then end; does not wait for that.
    ///
    /// The actor calls it in `deinit`, which may run anywhere: on a thread of the
    /// cooperative pool, which must not wait, or in one of the loop's own jobs.
    func stop() {
        let mustWake = self.state.withLock { state -> Bool in
            state.isStopping = true
            // Without a thread there is nothing that could still run a job.
            state.hasEnded = state.hasEnded || !state.isStarted
            defer { state.isSleeping = false }
            return state.isSleeping
        }
        if mustWake { self.engine.wake() }
    }

    private func run() {
        self.runner.store(POSIXThread.currentID, ordering: .relaxed)
        defer {
            self.runner.store(0, ordering: .relaxed)
            self.didEnd?()
        }
        let executor = self.asUnownedSerialExecutor()
        var batch: [UnownedJob] = []
        var batchesInRow = 0
        while true {
            switch self.nextStep(&batch) {
            case .run:
                for job in batch { job.runSynchronously(on: executor) }
                batch.removeAll(keepingCapacity: true)
                batchesInRow += 1
                // Jobs that bring new jobs must not keep the sockets waiting.
                if batchesInRow % Self.batchesBeforeSockets == 0 { self.engine.poll() }
            case .sleep:
                batchesInRow = 0
                self.engine.wait()
            case .end: return
            }
            // Moving transfers resumes tasks, whose jobs come back here: look before sleeping.
            self.engine.drive()
        }
    }

    private func nextStep(_ batch: inout [UnownedJob]) -> Step {
        self.state.withLock { state in
            state.isSleeping = false
            guard state.jobs.isEmpty else {
                swap(&batch, &state.jobs)
                return .run
            }
            guard !state.isStopping else {
                state.hasEnded = true
                return .end
            }
            state.isSleeping = true
            return .sleep
        }
    }
}
