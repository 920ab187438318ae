import Glibc
import Synchronization
import TintypeConcurrency

/// A serial executor that is also the event loop of one transfer engine.
///
/// Its thread runs jobs and moves transfers in turn, and between them sleeps in the wait of
/// the multi handle, so that sockets and jobs end the same sleep. The thread starts with
/// ``start()`` or the first job, and keeps the loop alive until ``stop()``.
///
/// A job can't be refused. Where the system refuses the thread or what it needs, jobs run one after the other on
/// the cooperative pool; there is no transfer then, since each is preceded by ``start()``.
final class CurlLoop: SerialExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var isStarted = false
        /// Whether the thread waits, or is about to, and so must be woken.
        var isSleeping = false
        /// Whether a task runs jobs, for want of a thread; a thread that was started meanwhile waits for its end.
        var isLent = false
        var isStopping = false
        var hasEnded = false
    }

    private enum EnqueueAction {
        case none
        case wake
        case lend
        case trap
    }

    private enum Step {
        case run
        case sleep
        /// As long as a task runs jobs: the engine is theirs.
        case park
        case end
    }

    private static let batchesBeforeSockets = 8

    /// Only jobs of the actor may use it, except for `wake()`.
    let engine: TransferEngine
    private let state = Locked(State())
    private let startThread: POSIXThread.Starter
    /// Whether the thread runs, to be seen without the lock.
    private let isStarted = Atomic<Bool>(false)
    /// The identity of the thread that runs jobs, or 0; written by that thread.
    private let runner = Atomic<UInt>(0)
    private let didEnd: (@Sendable () -> Void)?

    init(
        engine: TransferEngine,
        startThread: @escaping POSIXThread.Starter = POSIXThread.start,
        didEnd: (@Sendable () -> Void)? = nil
    ) {
        self.engine = engine
        self.startThread = startThread
        self.didEnd = didEnd
    }

    /// Opens the engine and starts the thread, unless that was done.
    ///
    /// - Throws: ``LoopStartError``. A later call tries again.
    func start() throws(LoopStartError) {
        guard !self.isStarted.load(ordering: .relaxed) else { return }
        try self.state.withLock { state throws(LoopStartError) in
            guard !state.isStopping else { return }
            try self.ensureThread(&state)
        }
    }

    /// Neither libcurl nor the new thread calls anything that takes the lock.
    private func ensureThread(_ state: inout State) throws(LoopStartError) {
        guard !state.isStarted else { return }
        if self.engine.multi == nil { try self.engine.open() }
        do throws(ThreadError) {
            try self.startThread("tintype-curl") { self.run() }.detach()
        } catch {
            throw .thread(error)
        }
        state.isStarted = true
        self.isStarted.store(true, ordering: .relaxed)
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
            guard !state.isLent else { return .none }
            do throws(LoopStartError) {
                try self.ensureThread(&state)
            } catch {
                state.isLent = true
                return .lend
            }
            defer { state.isSleeping = false }
            return state.isSleeping ? .wake : .none
        }
        switch action {
        case .none: break
        case .wake: self.engine.wake()
        // Ends by itself, when there are no jobs or there is a thread.
        case .lend: Task { self.runLent() }
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
            state.hasEnded = state.hasEnded || !state.isStarted && !state.isLent
            defer { state.isSleeping = false }
            return state.isSleeping
        }
        if mustWake { self.engine.wake() }
    }

    private func run() {
        defer {
            self.runner.store(0, ordering: .relaxed)
            self.didEnd?()
        }
        var batch: [UnownedJob] = []
        var batchesInRow = 0
        while true {
            let step = self.nextStep(&batch)
            if step == .park {
                self.engine.park()
                continue
            }
            self.runner.store(POSIXThread.currentID, ordering: .relaxed)
            switch step {
            case .run:
                self.runJobs(&batch)
                batchesInRow += 1
                // Jobs that bring new jobs must not keep the sockets waiting.
                if batchesInRow % Self.batchesBeforeSockets == 0 { self.engine.poll() }
            case .sleep:
                batchesInRow = 0
                self.engine.wait()
            case .park, .end: return
            }
            // Moving transfers resumes tasks, whose jobs come back here: look before sleeping.
            self.engine.drive()
        }
    }

    private func nextStep(_ batch: inout [UnownedJob]) -> Step {
        self.state.withLock { state in
            state.isSleeping = false
            if state.isLent {
                state.isSleeping = true
                return .park
            }
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

    /// Runs jobs on the calling thread until there are none, or there is a thread for them.
    private func runLent() {
        var batch: [UnownedJob] = []
        while true {
            let (isOver, mustWake) = self.state.withLock { state -> (Bool, Bool) in
                // Each batch might be the last for which there is no thread.
                if !state.jobs.isEmpty, !state.isStopping { try? self.ensureThread(&state) }
                guard state.isStarted || state.jobs.isEmpty else {
                    swap(&batch, &state.jobs)
                    return (false, false)
                }
                state.isLent = false
                if !state.isStarted, state.isStopping { state.hasEnded = true }
                defer { state.isSleeping = false }
                return (true, state.isSleeping)
            }
            if mustWake { self.engine.wake() }
            if isOver { return }
            self.runner.store(POSIXThread.currentID, ordering: .relaxed)
            self.runJobs(&batch)
            self.runner.store(0, ordering: .relaxed)
        }
    }

    private func runJobs(_ batch: inout [UnownedJob]) {
        let executor = self.asUnownedSerialExecutor()
        for job in batch { job.runSynchronously(on: executor) }
        batch.removeAll(keepingCapacity: true)
    }
}

/// Why the loop of a downloader can't be started now.
enum LoopStartError: Error {
    /// The process or the system has no file descriptor left.
    case tooManyOpenFiles
    /// The system, or libcurl, has no memory.
    case outOfMemory
    /// The system refuses the thread.
    case thread(ThreadError)

    /// What the refusal of a descriptor with this `errno` means.
    init(refused code: CInt) {
        self = code == EMFILE || code == ENFILE ? .tooManyOpenFiles : .outOfMemory
    }
}
