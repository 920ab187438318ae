// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TintypeConcurrency

/// The turn of one load to make an entry that a tier does not have.
///
/// No two turns of a process are equal.
public struct TierTurn: Sendable, Hashable {
    @TaskLocal private static var ofTask: TierTurn?
    /// The turn of the load for which a tier looks for an entry; `nil` outside of loads.
    public static var current: TierTurn? { self.ofTask }

    private static let lastID = Atomic<UInt64>(0)
    private let id = Self.lastID.wrappingAdd(1, ordering: .relaxed).newValue
    /// The start of the load, which may have several turns.
    public package(set) var start = TierTurns.current?.start ?? .now

    /// Creates a turn, for tests of tiers.
    ///
    /// ```swift
    /// let turn = TierTurn()
    /// let entry = try await TierTurn.run(in: turn) { try await redis.entry(for: key) }
    /// await redis.endTurn(turn, for: key, isCancelled: false)
    /// ```
    public init() {}

    /// Runs `operation`, in which `turn` is the current one.
    ///
    /// A tier that also looks for other keys than the load's does that in no turn, because the cache ends the turn for the
    /// load's key only:
    ///
    /// ```swift
    /// let older = try await TierTurn.run(in: nil) { try await redis.entry(for: key.derived("older")) }
    /// ```
    public static func run<Value>(in turn: TierTurn?, _ operation: () async throws -> Value) async rethrows -> Value {
        try await Self.$ofTask.withValue(turn, operation: operation)
    }
}

/// The turns of a load in the tiers of other machines.
///
/// They end with the load and with the stores that it leaves in the background.
final class TierTurns: Sendable {
    private struct State {
        var holderCount = 1
        var isCancelled = false
        var ends: [End] = []
    }

    typealias End = @Sendable (_ isCancelled: Bool) -> Void

    /// The turns of the load under way.
    @TaskLocal static var current: TierTurns?

    /// The start of the load, or of the one that needs it.
    fileprivate let start: ContinuousClock.Instant = TierTurns.current?.start ?? .now
    private let state = Locked(State())

    /// Adds a holder; the turns end when all holders have called ``release()``.
    func hold() {
        self.state.withLock { $0.holderCount += 1 }
    }

    /// Ends the turns if no other holder is left.
    func release() {
        let (ends, isCancelled) = self.state.withLock { state -> ([End], Bool) in
            state.holderCount -= 1
            state.isCancelled = state.isCancelled || Task.isCancelled
            guard state.holderCount == 0 else { return ([], false) }
            defer { state.ends = [] }
            return (state.ends, state.isCancelled)
        }
        for end in ends { end(isCancelled) }
    }

    /// Adds a function that ends a turn.
    @inline(never)
    func add(_ end: @escaping End) {
        let isOver = self.state.withLock { state in
            if state.holderCount > 0 { state.ends.append(end) }
            return state.holderCount == 0
        }
        if isOver { end(true) }
    }
}
