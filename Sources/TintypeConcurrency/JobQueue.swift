// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A serial executor that runs the jobs of its ``JobQueue`` on one thread.
package protocol JobThread: SerialExecutor {
    associatedtype StartError: Error

    /// Starts the thread, which takes its steps from ``JobQueue/next(_:)`` until ``JobQueue/Step/end``.
    ///
    /// Must not call the queue, which is locked during the call.
    func startThread() throws(StartError)

    /// Ends the current sleep of the thread, or its next one.
    func wakeThread()
}

/// The jobs of an executor with one thread, in the order in which they were enqueued.
///
/// A job cannot be refused. If the system refuses the thread, jobs run one after the other on the cooperative pool
/// until the thread can start.
package final class JobQueue: Sendable {
    /// The next step of the thread.
    package enum Step {
        /// Run the jobs.
        case run
        /// Sleep until woken, or until another event for which the thread waits.
        case sleep
        /// Sleep until woken, and touch nothing, because a task runs the jobs.
        case park
        case end
    }

    private struct State {
        var jobs: [UnownedJob] = []
        var hasThread = false
        /// Whether the thread sleeps, or is about to sleep, and so must be woken.
        var isSleeping = false
        /// Whether a task runs the jobs for lack of a thread; a thread that starts meanwhile waits for the task to end.
        var isLent = false
        var isStopping = false
        /// Whether the thread has ended, or soon will, so that jobs run on the cooperative pool.
        var isRetired = false
        var hasEnded = false
    }

    private enum EnqueueAction {
        case none
        case wake
        case lend
        case trap
    }

    private let state = Locked(State())
    /// Whether the thread was started; readable without the lock.
    private let hasStarted = Atomic(false)
    /// The identity of the thread that runs jobs, or 0; written by that thread.
    private let runner = Atomic<UInt>(0)

    private let name: String

    /// Creates the queue of an executor whose thread is called `name`.
    package init(name: String) {
        self.name = name
    }

    /// Whether the thread was started.
    package var hasThread: Bool { self.hasStarted.load(ordering: .relaxed) }

    /// Whether a job that is enqueued now runs at once, or as soon as there is a thread.
    package var isIdle: Bool {
        self.state.withLock { $0.jobs.isEmpty && !$0.isLent && ($0.isSleeping || !$0.hasThread) }
    }

    /// Whether jobs wait behind the running ones.
    package var hasWaitingJobs: Bool { self.state.withLock { !$0.jobs.isEmpty } }

    /// Whether the calling thread is the one that runs jobs.
    package var isCurrent: Bool { self.runner.load(ordering: .relaxed) == POSIXThread.currentID }

    /// Traps unless called on the thread that runs jobs.
    package func checkIsCurrent() {
        precondition(self.isCurrent, "not on the thread of the executor \(self.name)")
    }

    /// Starts the thread of `owner`, unless it was started or the queue was stopped.
    ///
    /// - Throws: The owner's error. A later call tries again.
    package func start<Owner: JobThread>(_ owner: Owner) throws(Owner.StartError) {
        guard !self.hasThread else { return }
        try self.state.withLock { state throws(Owner.StartError) in
            guard !state.isStopping, !state.isRetired else { return }
            try self.ensureThread(&state, owner)
        }
    }

    private func ensureThread<Owner: JobThread>(_ state: inout State, _ owner: Owner) throws(Owner.StartError) {
        guard !state.hasThread else { return }
        try owner.startThread()
        state.hasThread = true
        self.hasStarted.store(true, ordering: .relaxed)
    }

    /// Queues `job`; safe from any thread.
    ///
    /// Traps if the queue was stopped and the thread has ended, because the job could never run.
    package func enqueue<Owner: JobThread>(_ job: consuming ExecutorJob, for owner: Owner) {
        // The job may run, and end the actor and the owner with it, before the wake below.
        let retained = Unmanaged.passRetained(owner)
        defer { retained.release() }
        let job = UnownedJob(job)
        let action = self.state.withLock { state -> EnqueueAction in
            guard !state.hasEnded else { return .trap }
            state.jobs.append(job)
            guard !state.isLent else { return .none }
            guard state.hasThread || !state.isRetired else {
                state.isLent = true
                return .lend
            }
            do throws(Owner.StartError) {
                try self.ensureThread(&state, owner)
            } catch {
                state.isLent = true
                return .lend
            }
            defer { state.isSleeping = false }
            return state.isSleeping ? .wake : .none
        }
        switch action {
        case .none: break
        case .wake: owner.wakeThread()
        // Ends by itself, when there are no jobs or there is a thread.
        case .lend: Task { self.runLent(for: owner) }
        case .trap: preconditionFailure("a job was enqueued on the stopped executor \(self.name)")
        }
    }

    /// Lets the thread of `owner` run the queued jobs and then end.
    ///
    /// Does nothing and returns false if the queue was already stopped.
    package func stop(_ owner: some JobThread) -> Bool {
        let (isFirst, mustWake) = self.state.withLock { state -> (Bool, Bool) in
            guard !state.isStopping else { return (false, false) }
            state.isStopping = true
            // Without a thread there is nothing that could still run a job.
            if !state.hasThread, !state.isLent { state.hasEnded = true }
            defer { state.isSleeping = false }
            return (true, state.isSleeping)
        }
        if mustWake { owner.wakeThread() }
        return isFirst
    }

    /// Lets the thread of `owner` run the queued jobs and then end; later jobs run on the cooperative pool.
    ///
    /// Unlike after ``stop(_:)``, the executor still works. Does nothing and returns false if the queue was already
    /// stopped or retired.
    package func retire(_ owner: some JobThread) -> Bool {
        let (isFirst, mustWake) = self.state.withLock { state -> (Bool, Bool) in
            guard !state.isStopping, !state.isRetired else { return (false, false) }
            state.isRetired = true
            defer { state.isSleeping = false }
            return (true, state.isSleeping)
        }
        if mustWake { owner.wakeThread() }
        return isFirst
    }

    /// Returns the next step of the thread, and puts the jobs to run into `batch`, which must be empty.
    package func next(_ batch: inout [UnownedJob]) -> Step {
        let step = self.state.withLock { state -> Step in
            state.isSleeping = false
            if state.isLent {
                state.isSleeping = true
                return .park
            }
            guard state.jobs.isEmpty else {
                swap(&batch, &state.jobs)
                return .run
            }
            guard !state.isStopping, !state.isRetired else {
                state.hasEnded = state.isStopping
                state.hasThread = false
                // Here, because a job that comes next may be run by a task.
                self.runner.store(0, ordering: .relaxed)
                return .end
            }
            state.isSleeping = true
            return .sleep
        }
        // Not before: until then a task may run jobs.
        if step == .run || step == .sleep { self.runner.store(POSIXThread.currentID, ordering: .relaxed) }
        return step
    }

    /// Runs the jobs, and leaves `batch` empty.
    package func run(_ batch: inout [UnownedJob], on owner: some JobThread) {
        let executor = owner.asUnownedSerialExecutor()
        for job in batch { job.runSynchronously(on: executor) }
        batch.removeAll(keepingCapacity: true)
    }

    /// Runs jobs on the calling thread until the queue is empty, or until there is a thread to run them.
    private func runLent(for owner: some JobThread) {
        var batch: [UnownedJob] = []
        while true {
            let (isOver, mustWake) = self.state.withLock { state -> (Bool, Bool) in
                // Each batch might be the last for which there is no thread.
                if !state.jobs.isEmpty, !state.isStopping, !state.isRetired { try? self.ensureThread(&state, owner) }
                guard state.hasThread || state.jobs.isEmpty else {
                    swap(&batch, &state.jobs)
                    return (false, false)
                }
                state.isLent = false
                if !state.hasThread, state.isStopping { state.hasEnded = true }
                defer { state.isSleeping = false }
                return (true, state.isSleeping)
            }
            if mustWake { owner.wakeThread() }
            if isOver { return }
            self.runner.store(POSIXThread.currentID, ordering: .relaxed)
            self.run(&batch, on: owner)
            self.runner.store(0, ordering: .relaxed)
        }
    }
}
