// SPDX-License-Identifier: Apache-2.0

/// The moments at which transfers need attention although nothing arrives: next tries, ends, and looks at limits.
///
/// A value without a clock: the caller passes the time.
struct TransferDeadlines {
    private struct Appointment: Comparable {
        let time: LoopInstant
        let id: UInt64

        static func < (left: Appointment, right: Appointment) -> Bool { left.time < right.time }
    }

    /// The number of outdated ends that are kept in any case.
    private static let spareEnds = 1_024

    private var tries = Heap<Appointment>()
    /// The ends of transfers that have one for all their tries, and of some that are over.
    private var ends = Heap<Appointment>()
    /// No running transfer can be overdue before this.
    private var nextLook: LoopInstant?
    /// Speeds are looked at in steps from here on.
    private let speedCheckOrigin: LoopInstant
    private let speedCheckInterval: Duration
    private var nextSpeedCheck: LoopInstant

    init(speedCheckInterval: Duration, now: LoopInstant) {
        self.speedCheckInterval = speedCheckInterval
        self.speedCheckOrigin = now
        self.nextSpeedCheck = now
    }

    /// The earliest of all deadlines, or `nil` without one.
    var next: LoopInstant? {
        .earlier(self.nextLook, .earlier(self.tries.first?.time, self.ends.first?.time))
    }

    // MARK: Tries

    /// Adds the time of a transfer's next try.
    mutating func addTry(of id: UInt64, at time: LoopInstant) {
        self.tries.insert(Appointment(time: time, id: id))
    }

    /// Removes and returns a transfer whose next try is due.
    mutating func takeTry(now: LoopInstant) -> UInt64? {
        self.tries.first.map { $0.time <= now } ?? false ? self.tries.popFirst()?.id : nil
    }

    /// Whether a transfer waits for the time of its next try.
    var hasTries: Bool { self.tries.first != nil }

    // MARK: Ends

    /// Adds the time at which a transfer must be over.
    mutating func addEnd(of id: UInt64, at time: LoopInstant) {
        self.ends.insert(Appointment(time: time, id: id))
    }

    /// Removes and returns a transfer whose end has come, or had come before it was moved away.
    mutating func takeEnd(now: LoopInstant) -> UInt64? {
        self.ends.first.map { $0.time <= now } ?? false ? self.ends.popFirst()?.id : nil
    }

    /// Removes the ends of transfers that are over once these outnumber the others.
    mutating func removeOutdatedEnds(count: Int, _ isCurrent: (UInt64) -> Bool) {
        guard self.ends.count > count * 2 + Self.spareEnds else { return }
        self.ends.filter { isCurrent($0.id) }
    }

    // MARK: Looks

    /// Adds a moment at which the limits of running transfers must be looked at.
    mutating func expectLook(at time: LoopInstant) {
        self.nextLook = .earlier(self.nextLook, time)
    }

    /// Adds the next look at speeds after `time`: at the same moments for all transfers, so that thousands cost one look.
    mutating func expectSpeedCheck(after time: LoopInstant) {
        if self.nextSpeedCheck <= time {
            let count = ((time - self.speedCheckOrigin) / self.speedCheckInterval).rounded(.down) + 1
            self.nextSpeedCheck = self.speedCheckOrigin + self.speedCheckInterval * count
        }
        self.expectLook(at: self.nextSpeedCheck)
    }

    /// Returns by how much a look at the limits is late, or `nil` if none is due; removes all looks that were added.
    mutating func takeLook(now: LoopInstant) -> Duration? {
        guard let nextLook, now >= nextLook else { return nil }
        self.nextLook = nil
        return now - nextLook
    }
}
