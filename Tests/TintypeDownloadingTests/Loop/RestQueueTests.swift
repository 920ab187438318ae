// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeDownloading

/// The order in which transfers that used up their share continue, as a pure value.
@Suite struct RestQueueTests {
    private final class Handle {
        let name: String

        init(_ name: String) {
            self.name = name
        }
    }

    private static let start = LoopInstant.now

    /// Runs a turn in which at most `limit` transfers continue, and returns their names.
    private func turn(
        of queue: inout RestQueue<Handle>,
        isIdle: Bool,
        after milliseconds: Int,
        limit: Int = 2
    ) -> [String] {
        let now = Self.start + .milliseconds(milliseconds)
        let count = min(limit, queue.beginTurn(isIdle: isIdle, at: now))
        return (0..<count).compactMap { _ in queue.popFirst(at: now)?.name }
    }

    private func queue(brief: Int, long: Int) -> RestQueue<Handle> {
        var queue = RestQueue<Handle>(at: Self.start)
        for number in 0..<long { queue.insert(Handle("long \(number)"), restCount: 9) }
        for number in 0..<brief { queue.insert(Handle("brief \(number)"), restCount: 8) }
        return queue
    }

    @Test func `a transfer that rests often waits for the loop to be idle`() {
        var queue = self.queue(brief: 1, long: 2)
        #expect(self.turn(of: &queue, isIdle: false, after: 1) == ["brief 0"])
        #expect(self.turn(of: &queue, isIdle: false, after: 2) == [])
        #expect(self.turn(of: &queue, isIdle: true, after: 2) == ["long 0", "long 1"])
        #expect(queue.isEmpty)
    }

    @Test func `in a busy loop, one often resting transfer continues first every four milliseconds`() {
        var queue = self.queue(brief: 20, long: 2)
        #expect(self.turn(of: &queue, isIdle: false, after: 4) == ["long 0", "brief 0"])
        #expect(self.turn(of: &queue, isIdle: false, after: 7) == ["brief 1", "brief 2"])
        #expect(self.turn(of: &queue, isIdle: false, after: 8) == ["long 1", "brief 3"])
    }

    @Test func `often resting transfers continue even if others rest in every turn of an idle loop`() {
        var queue = self.queue(brief: 20, long: 1)
        #expect(self.turn(of: &queue, isIdle: true, after: 1) == ["brief 0", "brief 1"])
        #expect(self.turn(of: &queue, isIdle: true, after: 5) == ["long 0", "brief 2"])
    }

    @Test func `a thousand often resting transfers wait about 250 milliseconds each in a busy loop`() {
        var queue = self.queue(brief: 0, long: 1_000)
        var continuedCount = 0
        for step in 1...10_000 where !queue.isEmpty {
            let now = Self.start + .microseconds(100 * step)
            let count = queue.beginTurn(isIdle: false, at: now)
            #expect(count <= 1)
            if count == 1, queue.popFirst(at: now) != nil {
                queue.insert(Handle("again"), restCount: 10)
                continuedCount += 1
            }
            if continuedCount == 1_000 { return #expect(step < 3_100, "\(step)") }
        }
        Issue.record("\(continuedCount) of them have continued")
    }

    @Test(arguments: [1, 9])
    func `a transfer that has ended never continues`(restCount: Int) {
        var queue = RestQueue<Handle>(at: Self.start)
        let (ended, other) = (Handle("ended"), Handle("other"))
        queue.insert(ended, restCount: restCount)
        queue.insert(other, restCount: restCount)
        queue.remove(ended)
        #expect(self.turn(of: &queue, isIdle: true, after: 1) == ["other"])
        #expect(queue.isEmpty)
    }
}
