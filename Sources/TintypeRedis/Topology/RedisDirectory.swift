// SPDX-License-Identifier: Apache-2.0

/// Knows which node takes a command, and which nodes to ask for that.
///
/// A value without I/O: the engine asks its questions, and gives it the answers.
struct RedisDirectory {
    /// A command that finds the addresses of the masters.
    struct Question: Equatable {
        let address: RedisAddress
        let role: RedisNodeStatus.Role
        let command: RedisCommand
    }

    /// The shortest time between two questions for one reason, in nanoseconds.
    private static let shortestInterval: Int64 = 100_000_000
    /// The age of an answer at which the question is asked again, in nanoseconds.
    private static let longestInterval: Int64 = 5_000_000_000

    private let deployment: RedisConfiguration.Deployment
    private let seeds: [RedisAddress]
    private var layout: ClusterLayout?
    /// The master that Sentinel has named.
    private var master: RedisAddress?
    /// The nodes to ask, in turn.
    private var sources: [RedisAddress]
    private var sourceNumber = 0
    private var failuresInRow = 0
    private var isAsking = false
    private var dueTime = Int64.max
    private var lastQuestion = Int64.min / 2
    private var lastAnswer = Int64.min / 2
    private var schedule: ReconnectSchedule
    /// The last error, after all sources have failed.
    private var failure: RedisError?

    init(_ configuration: RedisConfiguration) {
        self.deployment = configuration.deployment
        self.schedule = ReconnectSchedule(configuration)
        switch configuration.deployment {
        case .standalone: self.seeds = []
        case .cluster(let seeds): self.seeds = seeds
        case .sentinel(let sentinels, _): self.seeds = sentinels
        }
        self.sources = self.seeds
    }

    /// Whether another node may take over from one that fails.
    var hasAlternatives: Bool { !self.seeds.isEmpty }

    // MARK: Targets

    /// Returns the node that takes a command, or `nil` if that is not known yet.
    mutating func target(of command: RedisCommand, now: Int64) -> RedisAddress? {
        switch self.deployment {
        case .standalone(let address): return address
        case .cluster:
            self.refreshOld(now)
            guard let layout else { return nil }
            // A node that does not serve the slot names the one that does.
            return command.key.flatMap { layout.master(of: KeySlot.of($0)) } ?? layout.masters.first
        case .sentinel:
            self.refreshOld(now)
            return self.master
        }
    }

    /// Returns the nodes, each of which sends the messages of all channels; empty if they are not known yet.
    mutating func messageTargets(now: Int64) -> [RedisAddress] {
        switch self.deployment {
        case .standalone(let address): return [address]
        case .cluster:
            self.refreshOld(now)
            return self.layout?.masters ?? []
        case .sentinel:
            self.refreshOld(now)
            return [self.master].compactMap { $0 }
        }
    }

    /// The known nodes and their roles.
    var nodes: [(address: RedisAddress, role: RedisNodeStatus.Role)] {
        switch self.deployment {
        case .standalone(let address): [(address, .master)]
        case .cluster:
            self.layout.map { layout in
                layout.masters.map { ($0, .master) } + layout.replicas.map { ($0, .replica) }
            } ?? self.seeds.map { ($0, .unknown) }
        case .sentinel: [self.master].compactMap { $0 }.map { ($0, .master) } + self.seeds.map { ($0, .sentinel) }
        }
    }

    // MARK: Questions

    /// The moment of the next question.
    var nextQuestionTime: Int64? { self.isAsking || self.dueTime == .max ? nil : self.dueTime }

    /// Returns the error of the sources if none of them is asked again before `deadline`.
    func failure(until deadline: Int64) -> RedisError? {
        guard let failure, let time = self.nextQuestionTime, time > deadline else { return nil }
        return failure
    }

    /// Asks for the addresses of the masters soon.
    mutating func refresh(now: Int64) {
        guard self.hasAlternatives, self.failuresInRow == 0 else { return }
        self.dueTime = min(self.dueTime, max(now, self.lastQuestion + Self.shortestInterval))
    }

    private mutating func refreshOld(_ now: Int64) {
        if now - self.lastAnswer > Self.longestInterval { self.refresh(now: now) }
    }

    /// Returns a question whose time has come.
    mutating func takeQuestion(now: Int64) -> Question? {
        guard !self.isAsking, self.dueTime <= now, !self.sources.isEmpty else { return nil }
        self.isAsking = true
        self.dueTime = .max
        self.lastQuestion = now
        let address = self.sources[self.sourceNumber % self.sources.count]
        switch self.deployment {
        case .standalone: return nil
        case .cluster:
            let command = RedisCommand("CLUSTER", "SLOTS", isReadOnly: true)
            return Question(address: address, role: .unknown, command: command)
        case .sentinel(_, let service):
            let words: [RedisArgument] = ["get-master-addr-by-name", .text(service)]
            return Question(address: address, role: .sentinel, command: RedisCommand("SENTINEL", arguments: words))
        }
    }

    /// Takes an answer of the node `address`; returns an error if the answer does not help.
    mutating func answer(_ value: RedisValue, from address: RedisAddress, now: Int64) -> RedisError? {
        switch self.deployment {
        case .standalone: return nil
        case .cluster:
            guard let layout = ClusterLayout(value, from: address), !layout.masters.isEmpty else {
                return RedisError(.clusterDown, "\(address) knows no node that serves slots. Is it part of a cluster?")
            }
            self.layout = layout
            let known = layout.masters + layout.replicas
            // The engine closes a node that the layout lists only by another name, so ask a node of the layout next.
            let first = known.filter { $0 == address }
            self.sources = first + (known + self.seeds.filter { !known.contains($0) }).filter { !first.contains($0) }
        case .sentinel(_, let service):
            guard let parts = value.elements, parts.count >= 2, let host = parts[0].text, let number = parts[1].number,
                (1...65_535).contains(number), !host.isEmpty, !host.utf8.contains(0)
            else {
                return RedisError(.disconnected, "Sentinel \(address) knows no master of \(service). Check the name.")
            }
            self.master = RedisAddress(host, port: Int(number))
            self.sources = [address] + self.seeds.filter { $0 != address }
        }
        self.sourceNumber = 0
        self.failuresInRow = 0
        self.failure = nil
        self.schedule.reset()
        self.isAsking = false
        self.lastAnswer = now
        return nil
    }

    /// Records that a question had no answer; returns whether all sources have failed.
    mutating func fail(_ error: RedisError, now: Int64) -> Bool {
        self.isAsking = false
        self.sourceNumber += 1
        self.failuresInRow += 1
        guard self.failuresInRow % max(1, self.sources.count) == 0 else {
            self.dueTime = now
            return false
        }
        self.failure = error
        self.dueTime = now + self.schedule.pauseAfterFailure()
        return true
    }

    /// Records the answer `MOVED` to a command.
    mutating func move(slot: Int, to address: RedisAddress) {
        self.layout?.serve(slot...slot, by: address)
    }
}
