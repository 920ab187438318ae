// SPDX-License-Identifier: Apache-2.0

import CTintypeShims

/// An actor that serves sockets on the ``SocketLoop`` that is its executor.
package protocol SocketActor: Actor {
    /// Serves a socket that is ready.
    func serve(_ descriptor: CInt, events: CInt)

    /// Ends a turn of the loop, in which it ran jobs or served sockets.
    func endTurn()

    /// Returns the longest time to wait for sockets, in milliseconds; -1 means no limit.
    func prepareToWait() -> Int
}

/// A serial executor that is also the event loop of an actor's sockets.
///
/// Its thread runs jobs and serves sockets in turn. In between it waits on the epoll set until a socket or a job wakes
/// it. The thread keeps the loop and its actor alive until ``end()``.
package final class SocketLoop: SerialExecutor {
    private let queue: JobQueue
    /// Ends the wait of the loop; safe from any thread.
    package let wakeup: EpollSet.Wakeup
    /// Sound: only the thread of the loop uses it.
    nonisolated(unsafe) fileprivate let sockets: EpollSet
    private let name: String
    private let thread = Locked<POSIXThread?>(nil)
    /// The actor whose sockets the loop serves; set before the thread starts.
    private let actor = Locked<(any SocketActor)?>(nil)

    /// Creates a loop.
    ///
    /// - Parameters:
    ///   - name: The name of the thread.
    ///   - descriptorCount: The descriptors that the loop needs at first, including the two of the epoll set.
    /// - Throws: ``EpollError`` if the system refuses a descriptor.
    package init(name: String, descriptorCount: CInt) throws(EpollError) {
        let sockets = try EpollSet(descriptorCount: descriptorCount)
        self.queue = JobQueue(name: name)
        self.wakeup = sockets.wakeup
        self.sockets = sockets
        self.name = name
    }

    /// Starts the thread, which serves the sockets of `actor` until ``end()``.
    package func start(serving actor: any SocketActor) throws(ThreadError) {
        self.actor.withLock { $0 = actor }
        do throws(ThreadError) {
            try self.queue.start(self)
        } catch {
            self.actor.withLock { $0 = nil }
            throw error
        }
    }

    /// Lets the thread end once it has run the queued jobs; later jobs run on the cooperative pool.
    package func end() {
        _ = self.queue.retire(self)
        self.actor.withLock { $0 = nil }
    }

    /// Waits for the end of the thread, on another thread.
    @concurrent
    package func join() async {
        self.thread.withLock { $0.take() }?.join()
    }

    /// Lets the thread end on its own.
    package func detach() {
        self.thread.withLock { $0.take() }?.detach()
    }

    private func run() {
        guard let actor = self.actor.withLock({ $0 }) else { return }
        // hiredis and `sendfile` write without a flag against the signal.
        POSIXThread.blockBrokenPipeSignal()
        // Everyone waits for this thread, which does little at a time: it must not stand behind others that compute.
        POSIXThread.preferShortSlices()
        var batch: [UnownedJob] = []
        while true {
            var milliseconds = 0
            switch self.queue.next(&batch) {
            case .run: self.queue.run(&batch, on: self)
            case .sleep: milliseconds = actor.waitTime()
            case .park:
                self.wakeup.wait()
                continue
            case .end: return
            }
            // A turn for the sockets follows each batch of jobs, so that neither keeps the other waiting.
            actor.turn(on: self, milliseconds)
        }
    }

    // MARK: Sockets, on the thread of the loop

    /// Adds a descriptor that is not in the loop yet; returns false if the system refuses it.
    package func add(_ descriptor: CInt, events: CInt) -> Bool {
        self.sockets.add(descriptor, events: events)
    }

    /// Changes the events of a descriptor, or adds the descriptor; `events` of 0 removes it.
    ///
    /// Returns false if the system refuses the change.
    package func watch(_ descriptor: CInt, events: CInt) -> Bool {
        self.sockets.set(descriptor, events: events) == 0
    }

    // MARK: SerialExecutor

    /// Queues `job`; safe from any thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        self.queue.enqueue(job, for: self)
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    package func isIsolatingCurrentContext() -> Bool? { self.queue.isCurrent }

    package func checkIsolated() { self.queue.checkIsCurrent() }
}

extension SocketLoop: JobThread {
    package func startThread() throws(ThreadError) {
        let thread = try POSIXThread.start(name: self.name) { self.run() }
        self.thread.withLock { $0 = thread }
    }

    package func wakeThread() {
        self.wakeup.wake()
    }
}

extension SocketActor {
    /// Called on the thread of the loop.
    fileprivate nonisolated func waitTime() -> Int {
        self.assumeIsolated { $0.prepareToWait() }
    }

    /// Waits for sockets, serves them, and ends the turn.
    ///
    /// Called on the thread of the loop.
    fileprivate nonisolated func turn(on loop: SocketLoop, _ milliseconds: Int) {
        self.assumeIsolated { actor in
            loop.sockets.wait(milliseconds: milliseconds) { events in
                for event in events where event.descriptor != loop.wakeup.descriptor {
                    actor.serve(event.descriptor, events: event.events)
                }
            }
            actor.endTurn()
        }
    }
}
