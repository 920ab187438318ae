// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency
import TintypeHTTP
import TintypeTestSupport

@testable import TintypeServer

/// A handler whose answers are scripted by the path of a request.
final class ScriptedHandler: RequestHandling {
    /// The way to an answer.
    enum Script: Sendable {
        case ready(@Sendable (ServerRequest) -> ServerAnswer)
        case waiting(@Sendable (ServerRequest) async -> ServerAnswer)

        /// An answer at once with this text.
        static func text(_ text: String) -> Script { .ready { _ in .text(200, text) } }

        /// An answer with this text when the gate opens, even if the task is cancelled.
        static func text(_ text: String, after gate: Gate) -> Script {
            .waiting { _ in
                await gate.wait()
                return .text(200, text)
            }
        }
    }

    private struct State {
        var records: [ExchangeRecord] = []
        var waitingCount = 0
        var cancelledCount = 0
        var turnCount = 0
    }

    private let scripts: [String: Script]
    private let limit: Int
    private let state = Locked(State())

    /// Creates a handler; a path without a script has the answer 404, and a body for `/forbidden` has 403.
    init(_ scripts: [String: Script] = [:], bodyLimit: Int = 0) {
        self.scripts = scripts
        self.limit = bodyLimit
    }

    /// The exchanges that have ended.
    var records: [ExchangeRecord] { self.state.withLock { $0.records } }
    /// The statuses of the exchanges that have ended.
    var statuses: [Int] { self.records.map(\.status) }
    /// The number of requests whose answers a task makes or made.
    var waitingCount: Int { self.state.withLock { $0.waitingCount } }
    /// The number of cancelled tasks.
    var cancelledCount: Int { self.state.withLock { $0.cancelledCount } }
    /// The number of turns of the loop.
    var turnCount: Int { self.state.withLock { $0.turnCount } }

    func readyAnswer(to request: ServerRequest) -> ServerAnswer? {
        switch self.scripts[request.head.target] {
        case .ready(let answer): answer(request)
        case .waiting: nil
        case nil: .text(404, "no script")
        }
    }

    func answer(to request: ServerRequest) async -> ServerAnswer {
        guard case .waiting(let answer) = self.scripts[request.head.target] else { return .text(500, "not a wait") }
        return await withTaskCancellationHandler {
            self.state.withLock { $0.waitingCount += 1 }
            return await answer(request)
        } onCancel: {
            self.state.withLock { $0.cancelledCount += 1 }
        }
    }

    func refusal(ofBodyOf head: RequestHead) -> ServerAnswer? {
        head.target == "/forbidden" ? .text(403, "no body for you") : nil
    }

    func bodyLimit(of request: RequestHead) -> Int { self.limit }

    func refusal(_ status: Int, _ reason: String) -> ServerAnswer { .text(status, reason) }

    func didEnd(_ exchange: ExchangeRecord) {
        self.state.withLock { $0.records.append(exchange) }
    }

    func didEndTurn() {
        self.state.withLock { $0.turnCount += 1 }
    }
}

/// A server with a scripted handler.
struct ScriptedServer {
    let handler: ScriptedHandler
    let connections: ConnectionActor
    let address: String

    /// Runs `body` with a server on a free port, and ends the server.
    static func run<Result>(
        _ scripts: [String: ScriptedHandler.Script] = [:],
        bodyLimit: Int = 0,
        limits: (inout ConnectionActor.Limits) -> Void = { _ in },
        _ body: (ScriptedServer) async throws -> Result
    ) async throws -> Result {
        var values = ConnectionActor.Limits()
        // On a busy machine, tests wait for longer than a server does.
        values.headTime = .seconds(60)
        values.answerTime = .seconds(60)
        values.progressTime = .seconds(60)
        limits(&values)
        let handler = ScriptedHandler(scripts, bodyLimit: bodyLimit)
        let (connections, address) = try await ConnectionActor.start(
            at: "127.0.0.1:0",
            handler: handler,
            limits: values
        )
        let server = ScriptedServer(handler: handler, connections: connections, address: address)
        do {
            let result = try await body(server)
            await connections.shutdown(within: .zero)
            return result
        } catch {
            await connections.shutdown(within: .zero)
            throw error
        }
    }

    /// Connects a client.
    func client(bufferSize: CInt? = nil) async throws -> ServerClient {
        try await ServerClient(to: self.address, bufferSize: bufferSize)
    }
}
