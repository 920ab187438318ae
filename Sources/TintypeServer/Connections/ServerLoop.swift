// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
import TintypeConcurrency

/// A serial executor that is also the event loop of a server's connections.
///
/// Its thread runs jobs and serves sockets in turn. In between it waits on the epoll set until a socket or a job wakes
/// it. The thread keeps the loop and its actor alive until ``stop()``.
final class ServerLoop: SerialExecutor {
    private static let threadName = "tintype-server"

    let queue = JobQueue(name: ServerLoop.threadName)
    /// Sound: only the thread of the loop uses it, except for the wakeup, which is safe from any thread.
    nonisolated(unsafe) private let sockets: EpollSet
    private let wakeup: EpollSet.Wakeup
    private let thread = Locked<POSIXThread?>(nil)
    /// The actor whose sockets the loop serves; set before the thread starts.
    private let actor = Locked<ConnectionActor?>(nil)

    /// - Throws: ``EpollError`` if the system refuses a descriptor.
    init() throws(EpollError) {
        // The set, its wakeup, a listener and a few connections.
        let sockets = try EpollSet(descriptorCount: 16)
        self.wakeup = sockets.wakeup
        self.sockets = sockets
    }

    /// Starts the thread, which serves the sockets of `actor` until ``stop()``.
    func start(serving actor: ConnectionActor) throws(ThreadError) {
        self.actor.withLock { $0 = actor }
        do throws(ThreadError) {
            try self.queue.start(self)
        } catch {
            self.actor.withLock { $0 = nil }
            throw error
        }
    }

    /// Runs the queued jobs, then ends the thread and waits for its end.
    ///
    /// Later jobs run on the cooperative pool. Must not be called on the thread of the loop.
    func stop() {
        guard self.queue.retire(self) else { return }
        self.thread.withLock { $0.take() }?.join()
        self.actor.withLock { $0 = nil }
    }

    private func run() {
        guard let actor = self.actor.withLock({ $0 }) else { return }
        // Unlike `sendmsg`, `sendfile` has no flag against the signal.
        POSIXThread.blockBrokenPipeSignal()
        var batch: [UnownedJob] = []
        while true {
            var milliseconds = 0
            switch self.queue.next(&batch) {
            case .run: self.queue.run(&batch, on: self)
            case .sleep: milliseconds = actor.assumeIsolated { $0.waitMilliseconds }
            case .park:
                self.wakeup.wait()
                continue
            case .end: return
            }
            // A turn for the sockets follows each batch of jobs, so that neither keeps the other waiting.
            actor.assumeIsolated { actor in
                self.sockets.wait(milliseconds: milliseconds) { events in
                    for event in events where event.descriptor != self.wakeup.descriptor {
                        actor.serve(event.descriptor, events: event.events)
                    }
                }
                actor.endTurn()
            }
        }
    }

    // MARK: Sockets, on the thread of the loop

    /// Reports each change of a connection once.
    ///
    /// Returns false if the system refuses.
    func add(connection descriptor: CInt) -> Bool {
        let events = CSHIMS_READABLE | CSHIMS_WRITABLE | CSHIMS_PEER_DONE | CSHIMS_ONCE_EACH
        return self.sockets.add(descriptor, events: CInt(events))
    }

    /// Reports waiting connections until they are accepted.
    ///
    /// Returns false if the system refuses.
    func add(listener descriptor: CInt) -> Bool {
        self.sockets.set(descriptor, events: CInt(CSHIMS_READABLE)) == 0
    }

    /// Stops reporting a descriptor.
    func remove(_ descriptor: CInt) {
        _ = self.sockets.set(descriptor, events: 0)
    }

    // MARK: SerialExecutor

    /// Queues `job`; safe from any thread.
    func enqueue(_ job: consuming ExecutorJob) {
        self.queue.enqueue(job, for: self)
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    func isIsolatingCurrentContext() -> Bool? { self.queue.isCurrent }

    func checkIsolated() { self.queue.checkIsCurrent() }
}

extension ServerLoop: JobThread {
    func startThread() throws(ThreadError) {
        let thread = try POSIXThread.start(name: Self.threadName) { self.run() }
        self.thread.withLock { $0 = thread }
    }

    func wakeThread() {
        self.wakeup.wake()
    }
}
