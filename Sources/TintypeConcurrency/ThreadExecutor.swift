import CShims
import Glibc
import Synchronization

/// A serial executor that runs every job on one POSIX thread of its own.
///
/// Jobs run in the order they were enqueued. The thread starts with the first job and
/// sleeps on an `eventfd` while it has none, so an idle executor costs nothing.
///
/// The thread keeps its executor alive: the owner calls ``shutdown()``, or keeps the
/// executor for the life of the process.
public final class ThreadExecutor: SerialExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var thread: POSIXThread?
        var isStopping = false
        var hasEnded = false
    }

    /// What the caller of `enqueue` does once it has let go of the lock.
    private enum EnqueueAction {
        case none
        case wake
        case trap
    }

    private let name: String
    private let state = Locked(State())
    /// The identity of the running thread, or 0; written by that thread only.
    private let runner = Atomic<UInt>(0)
    private let wakeDescriptor: CInt

    /// Creates an executor whose thread is called `name` (15 bytes are kept).
    public init(name: String) {
        self.name = name
        self.wakeDescriptor = cshims_eventfd()
        precondition(self.wakeDescriptor >= 0, "eventfd failed with errno \(errno): too many open files")
    }

    deinit {
        close(self.wakeDescriptor)
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
            if state.thread == nil, !state.isStopping {
                // Creating the thread under the lock calls nothing that takes it.
                state.thread = POSIXThread(name: self.name) { self.run() }
                return .none
            }
            return state.jobs.count == 1 ? .wake : .none
        }
        switch action {
        case .none: break
        case .wake: self.wake()
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
        let thread = self.state.withLock { state -> POSIXThread? in
            defer { state.isStopping = true }
            guard !state.isStopping else { return nil }
            if state.thread == nil { state.hasEnded = true }
            return state.thread
        }
        guard let thread else { return }
        self.wake()
        if self.isIsolatingCurrentContext() == true {
            thread.detach()
        } else {
            thread.join()
        }
    }

    private func wake() {
        var one: UInt64 = 1
        _ = write(self.wakeDescriptor, &one, MemoryLayout<UInt64>.size)
    }

    private func run() {
        self.runner.store(POSIXThread.currentID, ordering: .relaxed)
        defer { self.runner.store(0, ordering: .relaxed) }
        let executor = self.asUnownedSerialExecutor()
        var batch: [UnownedJob] = []
        while true {
            let hasEnded = self.state.withLock { state -> Bool in
                swap(&batch, &state.jobs)
                state.hasEnded = state.isStopping && batch.isEmpty
                return state.hasEnded
            }
            if hasEnded { return }
            for job in batch { job.runSynchronously(on: executor) }
            if !batch.isEmpty {
                batch.removeAll(keepingCapacity: true)
                continue
            }
            var count: UInt64 = 0
            _ = read(self.wakeDescriptor, &count, MemoryLayout<UInt64>.size)
        }
    }
}
