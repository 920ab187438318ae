import CShims
import Glibc
package import TintypeConcurrency

/// Watches whether memory is short, on a thread of its own that sleeps until the kernel has news.
///
/// It watches the pressure stall information of the machine and of the process' cgroup, and the cgroup's own
/// events. Where signals are not allowed it looks once a second. All caches of a process share one monitor,
/// which ends with the last of them.
public final class MemoryPressureMonitor: Sendable {
    /// Keeps being told until it goes away.
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

    private static let current = Locked(WeakMonitor())

    private struct WeakMonitor {
        weak var monitor: MemoryPressureMonitor?
    }

    private let state: PressureState
    private let thread = Locked<POSIXThread?>(nil)
    private let startThread: POSIXThread.Starter

    /// The monitor of this process, started if it is not running.
    public static func shared() -> MemoryPressureMonitor {
        // Under the lock only the thread is started, which does not take the lock.
        self.current.withLock { current in
            if let monitor = current.monitor { return monitor }
            let monitor = MemoryPressureMonitor(sensors: SystemPressure.sensors())
            current.monitor = monitor
            return monitor
        }
    }

    /// Starts a monitor of `sensors`.
    ///
    /// Where there is no thread or descriptor for it, it watches nothing, and each subscription tries again: caches
    /// then keep to their limits alone.
    ///
    /// - Parameters:
    ///   - sensors: What to watch.
    ///   - pause: The milliseconds in which the same pressure is told of once only.
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
        // The last reference may go away in a call from the thread itself.
        guard let thread = self.thread.withLock({ $0 }) else { return }
        if self.state.isOwnThread { thread.detach() } else { thread.join() }
    }

    /// Calls `body` on the monitor's thread whenever memory is short, until the subscription goes away.
    package func subscribe(_ body: @escaping @Sendable (MemoryPressure) -> Void) -> Subscription {
        self.ensureThread()
        return Subscription(self, self.state.add(body))
    }
}
