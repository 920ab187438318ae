import Glibc
import Synchronization

/// How long the cache's threads wait for what other processes have, which may have been stopped: the lock of a folder,
/// or room in it.
///
/// The kernel has no lock of this kind with a time limit, so it is tried again and again, with pauses that grow: a
/// holder that works has it for microseconds. What was once waited for in vain is only tried from then on, until it is
/// had again: of a hundred stores that wait, one pays.
final class Patience: Sendable {
    /// One wait.
    struct Wait: ~Copyable {
        fileprivate let patience: Patience
        /// In microseconds, as the sum of the pauses.
        private var waited = 0
        private var step = 20
        /// How many pauses there were.
        private(set) var count = 0

        fileprivate init(_ patience: Patience) {
            self.patience = patience
        }

        /// Sleeps for a while; `false` when the wait is over.
        mutating func pause() -> Bool {
            guard self.patience.permits(self.waited) else { return false }
            self.patience.sleep(.microseconds(self.step))
            self.waited += self.step
            self.step = min(2 * self.step, Patience.longestPause)
            self.count += 1
            return true
        }

        /// What was waited for is there.
        func succeed() {
            self.patience.noteSuccess()
        }
    }

    /// In microseconds.
    private static let longestPause = 1_000

    private let limit: Int
    /// What a wait lasts at least that has been cancelled meanwhile: a holder that works is done by then.
    private let leaverLimit: Int
    private let sleep: @Sendable (Duration) -> Void
    private let isClosing: @Sendable () -> Bool
    private let isStalled = Atomic<Bool>(false)

    /// How often a wait was given up.
    let timeouts = Atomic<Int>(0)

    /// - Parameters:
    ///   - limit: How long to wait.
    ///   - leaverLimit: How long where the task was cancelled, or the cache is shut down.
    ///   - isClosing: Whether it is.
    ///   - sleep: Lets the thread sleep.
    init(
        limit: Duration,
        leaverLimit: Duration = .milliseconds(50),
        isClosing: @escaping @Sendable () -> Bool = { false },
        sleep: @escaping @Sendable (Duration) -> Void = Patience.sleep
    ) {
        self.limit = Self.microseconds(limit)
        self.leaverLimit = Self.microseconds(leaverLimit)
        self.isClosing = isClosing
        self.sleep = sleep
    }

    func begin() -> Wait { Wait(self) }

    /// Runs `attempt` until it gives a result.
    ///
    /// - Throws: ``SystemCallError/lockTimedOut``.
    func wait<Result>(for attempt: () throws(SystemCallError) -> Result?) throws(SystemCallError) -> Result {
        // The usual case, without a wait.
        if let result = try attempt() {
            self.noteSuccess()
            return result
        }
        var wait = self.begin()
        while wait.pause() {
            guard let result = try attempt() else { continue }
            wait.succeed()
            return result
        }
        throw .lockTimedOut
    }

    /// Waits are made again.
    func noteSuccess() {
        if self.isStalled.load(ordering: .relaxed) { self.isStalled.store(false, ordering: .relaxed) }
    }

    /// Whether a wait may go on after so long.
    private func permits(_ waited: Int) -> Bool {
        let isOver = waited >= self.limit
        if isOver { self.isStalled.store(true, ordering: .relaxed) }
        let isLeft = waited >= self.leaverLimit && (Task.isCancelled || self.isClosing())
        guard isOver || isLeft || self.isStalled.load(ordering: .relaxed) else { return true }
        self.timeouts.add(1, ordering: .relaxed)
        return false
    }

    /// Sleeps, for less when a signal comes.
    static func sleep(_ duration: Duration) {
        usleep(UInt32(clamping: Self.microseconds(duration)))
    }

    private static func microseconds(_ duration: Duration) -> Int {
        let (seconds, attoseconds) = duration.components
        return max(0, Int(clamping: min(seconds, 1 << 32)) * 1_000_000 + Int(attoseconds / 1_000_000_000_000))
    }
}

extension SystemCallError {
    /// Another process kept the folder's lock for longer than this one waits.
    static let lockTimedOut = SystemCallError(call: "lock", number: ETIMEDOUT)
}
