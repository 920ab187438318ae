// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// The rounds in which equally urgent transfers of an origin start, so that clients take turns.
///
/// A transfer belongs to the round after its client's last one, but never to a past round. Lower rounds start first, so
/// each client starts a transfer before any other client starts a second one. But a client whose waiting transfers left
/// has their rounds again, and may start several transfers in one round. Transfers without a client belong to the current
/// round. This is start-time fair queueing (Goyal, Vin and Cheng, 1996). A pure value.
struct ClientTurns {
    private struct Turn {
        var lastRound: Int
        var waitingCount = 0
    }

    /// The highest round from which a transfer has started.
    private var round = 0
    private var turns: [WorkClient: Turn] = [:]
    /// With more clients than this, those without waiting transfers are forgotten, and begin again in the current round.
    private var memoryLimit = 1_024

    /// The number of clients that are remembered.
    var clientCount: Int { self.turns.count }

    /// Returns the round of a transfer that begins to wait.
    mutating func add(_ client: WorkClient?) -> Int {
        guard let client else { return self.round }
        var turn = self.turns[client] ?? Turn(lastRound: self.round - 1)
        turn.lastRound = max(self.round, turn.lastRound + 1)
        turn.waitingCount += 1
        self.turns[client] = turn
        return turn.lastRound
    }

    /// Records that a waiting transfer of a round starts, in its turn or before that.
    mutating func start(_ client: WorkClient?, round: Int, isInTurn: Bool) {
        if isInTurn { self.round = max(self.round, round) }
        guard let client, var turn = self.turns[client] else { return }
        turn.waitingCount -= 1
        // A start before its turn costs one round, even if the client's earlier transfers left.
        turn.lastRound = max(turn.lastRound, isInTurn ? round : self.round)
        self.turns[client] = turn
        guard self.turns.count > self.memoryLimit else { return }
        self.turns = self.turns.filter { $0.value.waitingCount > 0 }
        self.memoryLimit = max(1_024, self.turns.count * 2)
    }

    /// Records that a waiting transfer leaves before it starts: its round does not count.
    mutating func remove(_ client: WorkClient?) {
        guard let client, var turn = self.turns[client] else { return }
        turn.waitingCount -= 1
        turn.lastRound -= 1
        self.turns[client] = turn.waitingCount == 0 && turn.lastRound < self.round ? nil : turn
    }
}
