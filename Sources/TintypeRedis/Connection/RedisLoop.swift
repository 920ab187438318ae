// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
import TintypeConcurrency

/// A serial executor that is also the event loop of a client's connections.
///
/// Its thread runs jobs, serves sockets and takes the events of the inbox in turn. In between it waits on the epoll set
/// until one of them wakes it. The thread keeps the loop and its engine alive until ``end()``.
final class RedisLoop: SerialExecutor {
    private static let threadName = "tintype-redis"

    let queue = JobQueue(name: RedisLoop.threadName)
    let inbox: RedisInbox
    /// Sound: only the thread of the loop uses it, except for the wakeup, which is safe from any thread.
    nonisolated(unsafe) private let sockets: EpollSet
    private let wakeup: EpollSet.Wakeup
    private let thread = Locked<POSIXThread?>(nil)
    /// The engine whose sockets the loop serves; set before the thread starts.
    private let engine = Locked<RedisEngine?>(nil)

    /// - Throws: ``EpollError`` if the system refuses a descriptor.
    init(waitingLimit: Int) throws(EpollError) {
        // The set, its wakeup and a few connections.
        let sockets = try EpollSet(descriptorCount: 8)
        self.wakeup = sockets.wakeup
        self.sockets = sockets
        self.inbox = RedisInbox(limit: waitingLimit, wakeup: sockets.wakeup)
    }

    /// Starts the thread, which serves the sockets of `engine` until ``end()``.
    func start(serving engine: RedisEngine) throws(ThreadError) {
        self.engine.withLock { $0 = engine }
        do throws(ThreadError) {
            try self.queue.start(self)
        } catch {
            self.engine.withLock { $0 = nil }
            throw error
        }
    }

    /// Lets the thread end once it has run what is queued; later jobs run on the cooperative pool.
    func end() {
        _ = self.queue.retire(self)
        self.engine.withLock { $0 = nil }
    }

    /// Waits for the end of the thread.
    ///
    /// Must not be called on it.
    func join() {
        self.thread.withLock { $0.take() }?.join()
    }

    /// Lets the thread end on its own.
    func detach() {
        self.thread.withLock { $0.take() }?.detach()
    }

    private func run() {
        guard let engine = self.engine.withLock({ $0 }) else { return }
        // hiredis writes without a flag against the signal.
        POSIXThread.blockBrokenPipeSignal()
        var batch: [UnownedJob] = []
        var events: [RedisInbox.Event] = []
        while true {
            var milliseconds = 0
            switch self.queue.next(&batch) {
            case .run: self.queue.run(&batch, on: self)
            case .sleep:
                if self.inbox.prepareToSleep() { milliseconds = engine.assumeIsolated { $0.waitMilliseconds } }
            case .park:
                self.wakeup.wait()
                continue
            case .end: return
            }
            // A turn for the sockets follows each batch of jobs, so that neither keeps the other waiting.
            engine.assumeIsolated { engine in
                self.sockets.wait(milliseconds: milliseconds) { ready in
                    for event in ready where event.descriptor != self.wakeup.descriptor {
                        engine.serve(event.descriptor, events: event.events)
                    }
                }
                self.inbox.take(into: &events)
                engine.turn(&events)
            }
        }
    }

    /// Changes the events of a socket, or adds it; 0 removes it.
    ///
    /// Returns false if the system refuses it.
    ///
    /// Must be called on the thread of the loop.
    func watch(_ descriptor: CInt, events: CInt) -> Bool {
        self.sockets.set(descriptor, events: events) == 0
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

extension RedisLoop: JobThread {
    func startThread() throws(ThreadError) {
        let thread = try POSIXThread.start(name: Self.threadName) { self.run() }
        self.thread.withLock { $0 = thread }
    }

    func wakeThread() {
        self.wakeup.wake()
    }
}
