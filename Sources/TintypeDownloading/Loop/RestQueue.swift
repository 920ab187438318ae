// SPDX-License-Identifier: Apache-2.0

/// The transfers that have used up their share of a turn of the loop, in the order in which they continue.
///
/// A transfer that rests a few times continues in the next turn. One that rests often, such as a body that decompresses
/// to gigabytes, continues when the loop is idle, so that it does not come between the few steps of an ordinary load.
struct RestQueue<Handle: AnyObject> {
    /// A transfer that has rested more often waits for the loop to be idle.
    private static var briefCount: Int { 8 }
    /// The longest time for which a busy loop lets none of these continue.
    private static var busyTime: Duration { .milliseconds(4) }
    /// The longest time for which a busy loop lets one of them wait, if there are many.
    private static var longestTime: Duration { .milliseconds(250) }

    private var brief: [Handle] = []
    private var long: [Handle] = []
    /// The time when one that waits for the loop to be idle last continued.
    private var lastLongEnd: LoopInstant
    /// The number of them that may continue in this turn.
    private var longTurnCount = 0
    /// Whether one of them is due, and goes first.
    private var isLongDue = false

    init(at now: LoopInstant) {
        self.lastLongEnd = now
    }

    /// Whether no transfer rests.
    var isEmpty: Bool { self.brief.isEmpty && self.long.isEmpty }

    /// Adds a transfer, which has rested `restCount` times, including this one.
    mutating func insert(_ handle: Handle, restCount: Int) {
        if restCount > Self.briefCount { self.long.append(handle) } else { self.brief.append(handle) }
    }

    /// Removes a transfer that has ended.
    mutating func remove(_ handle: Handle) {
        self.brief.removeAll { $0 === handle }
        self.long.removeAll { $0 === handle }
    }

    /// Begins a turn, and returns the number of transfers that may continue in it.
    mutating func beginTurn(isIdle: Bool, at now: LoopInstant) -> Int {
        self.isLongDue = false
        self.longTurnCount = 0
        if !self.long.isEmpty {
            let interval = min(Self.busyTime, Self.longestTime / self.long.count)
            self.isLongDue = self.lastLongEnd + interval <= now
            self.longTurnCount = isIdle ? self.long.count : self.isLongDue ? 1 : 0
        }
        return self.brief.count + self.longTurnCount
    }

    /// Takes out the transfer that continues next; `nil` if no other one may continue in this turn.
    mutating func popFirst(at now: LoopInstant) -> Handle? {
        if self.longTurnCount > 0, !self.long.isEmpty, self.isLongDue || self.brief.isEmpty {
            self.isLongDue = false
            self.longTurnCount -= 1
            self.lastLongEnd = now
            return self.long.removeFirst()
        }
        return self.brief.isEmpty ? nil : self.brief.removeFirst()
    }
}
