// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// The scripts of a ``FaultyOrigin``, its record of requests, and the tasks that wait for requests.
final class FaultyRecord: Sendable {
    struct Counts {
        var requests = 0
        var connections = 0
        var disconnects = 0
    }

    struct State {
        var responses: [String: FaultyResponse]
        /// The responses to the first requests for a path, one each, before its usual response.
        var sequences: [String: [FaultyResponse]] = [:]
        /// The heads of all requests by path.
        var heads: [String: [String]] = [:]
        var counts: [String: Counts] = [:]
        /// The paths of all requests, in order.
        var paths: [String] = []
        var connections = 0
        var floodedBytes = 0
        fileprivate var observers: [Observer] = []
    }

    fileprivate struct Observer {
        let condition: @Sendable (State) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    private let state: Locked<State>

    init(responses: [String: FaultyResponse]) {
        self.state = Locked(State(responses: responses))
    }

    var connections: Int { self.state.withLock { $0.connections } }

    var floodedBytes: Int { self.state.withLock { $0.floodedBytes } }

    func counts(for path: String) -> Counts {
        self.state.withLock { $0.counts[path, default: Counts()] }
    }

    func script(_ path: String, _ response: FaultyResponse) {
        self.state.withLock { $0.responses[path] = response }
    }

    func script(_ path: String, sequence: [FaultyResponse]) {
        self.state.withLock { $0.sequences[path] = sequence }
    }

    var paths: [String] { self.state.withLock { $0.paths } }

    func heads(for path: String) -> [String] {
        self.state.withLock { $0.heads[path, default: []] }
    }

    /// Changes the state and resumes the tasks whose condition is now true.
    @discardableResult
    func update<Result: Sendable>(_ change: @Sendable (inout State) -> Result) -> Result {
        let (result, satisfied) = self.state.withLock { state -> (Result, [CheckedContinuation<Void, Never>]) in
            let result = change(&state)
            let observers = state.observers
            let satisfied = observers.filter { $0.condition(state) }
            if !satisfied.isEmpty { state.observers = observers.filter { !$0.condition(state) } }
            return (result, satisfied.map(\.continuation))
        }
        for continuation in satisfied { continuation.resume() }
        return result
    }

    func wait(until condition: @escaping @Sendable (State) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isSatisfied = self.state.withLock { state -> Bool in
                if condition(state) { return true }
                state.observers.append(Observer(condition: condition, continuation: continuation))
                return false
            }
            if isSatisfied { continuation.resume() }
        }
    }
}
