import Glibc
import Synchronization

/// A serial executor that runs every job on one POSIX thread of its own.
///
/// Jobs run in the order they were enqueued. The thread starts with the first job and
/// sleeps on a semaphore while it has none, so an idle executor costs nothing, and it takes no
/// file descriptor.
///
/// A job can't be refused. Where the system refuses the thread, jobs run one after the other on the cooperative
/// pool, until a thread is to be had. Call ``start()`` first where work must not get there: it says why there is
/// no thread.
///
/// The thread keeps its executor alive: the owner calls ``shutdown()``, or keeps the
/// executor for the life of the process.
public final class ThreadExecutor: SerialExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var thread: POSIXThread?
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
        case end
    }

    private let name: String
    private let startThread: POSIXThread.Starter
    private let state = Locked(State())
    /// The identity of the thread that runs jobs, or 0; written by that thread.
    private let runner = Atomic<UInt>(0)
    /// Allocated, since a semaphore has a place in memory.
    ///
    /// Sound: semaphores are made for many threads, and it lives as long as the executor.
    private nonisolated(unsafe) let wakeup = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    /// Creates an executor whose thread is called `name` (15 bytes are kept).
    public convenience init(name: String) {
        self.init(name: name, startThread: POSIXThread.start)
    }

    package init(name: String, startThread: @escaping POSIXThread.Starter) {
        self.name = name
        self.startThread = startThread
        sem_init(self.wakeup, 0, 0)
    }

    deinit {
        sem_destroy(self.wakeup)
        self.wakeup.deallocate()
    }

    /// Starts the thread, unless it runs.
    ///
    /// - Throws: ``ThreadError`` where the system refuses it. A later call tries again.
    public func start() throws(ThreadError) {
        try self.state.withLock { state throws(ThreadError) in
            guard !state.isStopping else { return }
            try self.ensureThread(&state)
        }
    }

    /// Whether the thread runs.
    package var isStarted: Bool { self.state.withLock { $0.thread != nil } }

    /// Creating the thread under the lock calls nothing that takes it.
    private func ensureThread(_ state: inout State) throws(ThreadError) {
        if state.thread == nil { state.thread = try self.startThread(self.name) { self.run() } }
    }

    // MARK: SerialExecutor

    /// Queues `job`; safe from any thread.
    ///
    /// Traps once the thread has ended after ``shutdown()``: the job could never run.
    public func enqueue(_ job: consuming ExecutorJob) {
        // The job may run, and end the actor and this executor with it, before the wake below.
        let retained = Unmanaged.passRetained(self)
        defer { retained.release() }
        let job = UnownedJob(job)
        let action = self.state.withLock { state -> EnqueueAction in
            guard !state.hasEnded else { return .trap }
            state.jobs.append(job)
            guard !state.isLent else { return .none }
            do throws(ThreadError) {
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
        case .wake: sem_post(self.wakeup)
        // Ends by itself, when there are no jobs or there is a thread.
        case .lend: Task { self.runLent() }
        case .trap: preconditionFailure("a job was enqueued on the stopped executor \(self.name)")
        }
    }

    /// A reference for `unownedExecutor`; the actor must also hold `self`.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    /// Lets `assumeIsolated` and `preconditionIsolated` succeed on the thread, even outside
    /// a job (in a C callback, for example).
    public func isIsolatingCurrentContext() -> Bool? {
        self.runner.load(ordering: .relaxed) == POSIXThread.currentID
    }

    /// Traps unless called on the executor's thread.
    public func checkIsolated() {
        precondition(self.isIsolatingCurrentContext() == true, "not on the thread of the executor \(self.name)")
    }

    // MARK: Lifetime

    /// Runs the jobs that are already queued, then ends the thread and waits for its end.
    ///
    /// From the executor's own thread (an actor whose last reference goes away in one of its
    /// jobs) it returns at once, and the thread ends by itself. A second call does nothing.
    public func shutdown() {
        let (thread, mustWake) = self.state.withLock { state -> (POSIXThread?, Bool) in
            guard !state.isStopping else { return (nil, false) }
            state.isStopping = true
            if state.thread == nil, !state.isLent { state.hasEnded = true }
            defer { state.isSleeping = false }
            return (state.thread, state.isSleeping)
        }
        if mustWake { sem_post(self.wakeup) }
        guard let thread else { return }
        if self.isIsolatingCurrentContext() == true {
            thread.detach()
        } else {
            thread.join()
        }
    }

    // MARK: Running

    private func run() {
        defer { self.runner.store(0, ordering: .relaxed) }
        var batch: [UnownedJob] = []
        while true {
            switch self.nextStep(&batch) {
            case .run:
                // Not before: until then a task may run jobs.
                self.runner.store(POSIXThread.currentID, ordering: .relaxed)
                self.runJobs(&batch)
            case .sleep: sem_wait(self.wakeup)
            case .end: return
            }
        }
    }

    private func nextStep(_ batch: inout [UnownedJob]) -> Step {
        self.state.withLock { state in
            state.isSleeping = false
            if !state.isLent {
                guard state.jobs.isEmpty else {
                    swap(&batch, &state.jobs)
                    return .run
                }
                guard !state.isStopping else {
                    state.hasEnded = true
                    return .end
                }
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
                guard state.thread != nil || state.jobs.isEmpty else {
                    swap(&batch, &state.jobs)
                    return (false, false)
                }
                state.isLent = false
                if state.thread == nil, state.isStopping { state.hasEnded = true }
                defer { state.isSleeping = false }
                return (true, state.isSleeping)
            }
            if mustWake { sem_post(self.wakeup) }
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
