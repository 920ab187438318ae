// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// The scripts of a ``FaultyOrigin``, and its record of requests.
final class FaultyRecord: Sendable {
    struct Counts {
        var requests = 0
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

    @discardableResult
    func update<Result: Sendable>(_ change: @Sendable (inout State) -> Result) -> Result {
        self.state.withLock { change(&$0) }
    }

    /// Waits until the condition is true, or the test is cancelled because its time is over.
    func wait(until condition: @Sendable (State) -> Bool) async {
        await until { self.state.withLock { condition($0) } }
    }
}
