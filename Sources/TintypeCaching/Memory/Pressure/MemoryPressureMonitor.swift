// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
import Synchronization
package import TintypeConcurrency

/// A monitor that reports a shortage of memory, with a thread that sleeps until the kernel signals.
///
/// It watches the pressure stall information of the machine and of the process' cgroup, and the events of the cgroup.
/// If the kernel does not permit signals, it polls once a second. All caches of a process share one monitor, which ends
/// with the last of them.
package final class MemoryPressureMonitor: Sendable {
    /// A subscription, which ends when it is released.
    package final class Subscription: Sendable {
        private let monitor: MemoryPressureMonitor
        private let number: Int

        fileprivate init(_ monitor: MemoryPressureMonitor, _ number: Int) {
            self.monitor = monitor
            self.number = number
        }

        deinit {
            self.monitor.state.remove(self.number)
        }
    }

    /// The number of descriptors that must be free for sensors, and as a reserve for caches and downloads.
    private static let neededDescriptors: CInt = 24

    private static let current = Locked(WeakMonitor())

    private struct WeakMonitor {
        weak var monitor: MemoryPressureMonitor?
    }

    private let state: PressureState
    private let thread = Locked<POSIXThread?>(nil)
    private let startThread: POSIXThread.Starter

    /// Returns the monitor of this process, and starts it if it is not running.
    package static func shared() -> MemoryPressureMonitor {
        // The new thread does not take this lock.
        self.current.withLock { current in
            if let monitor = current.monitor { return monitor }
            // Do not store this monitor, so that the next cache tries again.
            guard cshims_has_descriptors(self.neededDescriptors) != 0 else { return MemoryPressureMonitor(sensors: []) }
            let monitor = MemoryPressureMonitor(sensors: SystemPressure.sensors())
            current.monitor = monitor
            return monitor
        }
    }

    /// Starts a monitor of `sensors`.
    ///
    /// If there is no thread or descriptor for it, it watches nothing, and each subscription tries again. The caches
    /// then rely on their limits alone.
    ///
    /// - Parameters:
    ///   - sensors: The sensors.
    ///   - pause: The milliseconds during which the monitor reports the same pressure only once.
    ///   - startThread: Starts the thread.
    package init(
        sensors: [any PressureSensor],
        pause: Int = 1_000,
        startThread: @escaping POSIXThread.Starter = POSIXThread.start
    ) {
        self.state = PressureState(sensors: sensors, pause: pause)
        self.startThread = startThread
        self.ensureThread()
    }

    private func ensureThread() {
        // The new thread does not take the lock.
        self.thread.withLock { thread in
            guard thread == nil, self.state.prepare() else { return }
            thread = try? self.startThread("memory-pressure") { [state] in state.run() }
        }
    }

    deinit {
        self.state.stop()
        // The thread itself may release the last reference, in a call of a subscriber.
        guard let thread = self.thread.withLock({ $0 }) else { return }
        if self.state.isOwnThread { thread.detach() } else { thread.join() }
    }

    /// Calls `body` on the monitor's thread whenever memory is short, until the subscription is released.
    package func subscribe(_ body: @escaping @Sendable (MemoryPressure) -> Void) -> Subscription {
        self.ensureThread()
        return Subscription(self, self.state.add(body))
    }
}

/// The severity of a shortage of memory.
package enum MemoryPressure: Int, Sendable, Hashable, Comparable {
    /// Some tasks wait for memory, so caches should release the part that they can spare.
    case some = 1
    /// All tasks wait for memory, or the cgroup has reached its limit, so caches should release everything.
    case full = 2

    package static func < (left: MemoryPressure, right: MemoryPressure) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// The state of a monitor's thread: its sensors and subscribers.
///
/// It is separate from the monitor, so that the thread does not keep the monitor alive.
final class PressureState: Sendable {
    private struct Subscribers {
        var last = 0
        var bodies: [Int: @Sendable (MemoryPressure) -> Void] = [:]
        var isStopping = false
    }

    private let sensors: [any PressureSensor]
    private let pause: Int
    private let subscribers = Locked(Subscribers())
    private let wake = Locked<Descriptor?>(nil)
    /// The identity of the running thread, or 0; only that thread writes it.
    private let runner = Atomic<UInt>(0)

    init(sensors: [any PressureSensor], pause: Int) {
        self.sensors = sensors
        self.pause = pause
    }

    // MARK: From any thread

    /// Opens the eventfd that wakes the thread; returns `false` if that fails or there are no sensors.
    func prepare() -> Bool {
        guard !self.sensors.isEmpty else { return false }
        return self.wake.withLock { wake in
            wake = wake ?? Descriptor(cshims_eventfd())
            return wake != nil
        }
    }

    var isOwnThread: Bool { self.runner.load(ordering: .relaxed) == POSIXThread.currentID }

    func add(_ body: @escaping @Sendable (MemoryPressure) -> Void) -> Int {
        self.subscribers.withLock { subscribers in
            subscribers.last += 1
            subscribers.bodies[subscribers.last] = body
            return subscribers.last
        }
    }

    func remove(_ number: Int) {
        // Release the function after the lock, because it may own objects that end here.
        _ = self.subscribers.withLock { $0.bodies.removeValue(forKey: number) }
    }

    func stop() {
        self.subscribers.withLock { $0.isStopping = true }
        self.wake.withLock { $0 }?.signal()
    }

    // MARK: On the thread

    func run() {
        self.runner.store(POSIXThread.currentID, ordering: .relaxed)
        defer { self.runner.store(0, ordering: .relaxed) }
        // Without the eventfd nobody could stop the thread, so do not run.
        guard let wake = self.wake.withLock({ $0 }) else { return }
        var toldAt: [MemoryPressure: SuspendingClock.Instant] = [:]
        var broken: Set<CInt> = []
        while !self.subscribers.withLock({ $0.isStopping }) {
            let signals = self.sensors.map { sensor in
                sensor.signal.flatMap { broken.contains($0.descriptor) ? nil : $0 }
            }
            var polled = [pollfd(fd: wake.number, events: Int16(POLLIN), revents: 0)]
            // `poll` ignores a negative descriptor.
            polled += signals.map { pollfd(fd: $0?.descriptor ?? -1, events: $0?.events ?? 0, revents: 0) }
            let hasSilent = self.sensors.contains { $0.signal == nil }
            guard poll(&polled, nfds_t(polled.count), hasSilent ? 1_000 : -1) >= 0 || errno == EINTR else { return }
            let pressures = zip(self.sensors, polled.dropFirst()).compactMap { sensor, polled in
                if sensor.signal == nil { return sensor.read() }
                guard polled.revents != 0 else { return MemoryPressure?.none }
                if polled.revents & Int16(polled.events) == 0 { broken.insert(polled.fd) }
                return polled.revents & Int16(polled.events) != 0 ? sensor.read() : nil
            }
            if let pressure = pressures.max() { self.tell(pressure, &toldAt) }
        }
    }

    private func tell(_ pressure: MemoryPressure, _ toldAt: inout [MemoryPressure: SuspendingClock.Instant]) {
        let now = SuspendingClock.now
        // Halving a cache needs a moment to help, but emptying it never waits for halving.
        if let last = toldAt[pressure], now - last < .milliseconds(self.pause) { return }
        toldAt[pressure] = now
        let bodies = self.subscribers.withLock { Array($0.bodies.values) }
        for body in bodies { body(pressure) }
    }
}
