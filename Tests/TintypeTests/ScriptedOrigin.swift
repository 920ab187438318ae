// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency
import TintypeTestSupport

/// An origin in memory: it brings what its script says, without a socket.
///
/// ```swift
/// let origin = ScriptedOrigin(["/image": .body(try makePNG())])
/// let loader = try LoaderFixture(origin: origin).makeLoader()
/// ```
///
/// It records requests, changes of their urgency and cancellations, and lets tests wait for them. Paths without a
/// script are 404.
final class ScriptedOrigin: ImageFetching {
    private struct State {
        var scripts: [String: ScriptedResponse]
        var sequences: [String: [ScriptedResponse]] = [:]
        /// All requests, in the order in which they came.
        var requests: [(path: String, request: DownloadRequest)] = []
        /// How urgent the requests of a path were as they came, and what that became.
        var priorities: [String: [DownloadPriority]] = [:]
        var cancellations: [String: Int] = [:]
        var observers: [Observer] = []

        func requestCount(for path: String) -> Int { self.requests.count { $0.path == path } }
    }

    private struct Observer {
        let condition: @Sendable (State) -> Bool
        let gate: Gate
    }

    private let state: Locked<State>

    init(_ scripts: [String: ScriptedResponse] = [:]) {
        self.state = Locked(State(scripts: scripts))
    }

    /// The URL of a path, which starts with a slash.
    func url(_ path: String) -> URL {
        guard let url = URL(string: "https://origin.example\(path)") else { preconditionFailure("\(path) is no path") }
        return url
    }

    /// Sets or replaces what a path does from the next request on.
    func script(_ path: String, _ response: ScriptedResponse) {
        self.state.withLock { $0.scripts[path] = response }
    }

    /// Sets what the next requests for a path get, one each; those after them get what the path always gets.
    func script(_ path: String, sequence: [ScriptedResponse]) {
        self.state.withLock { $0.sequences[path] = sequence }
    }

    // MARK: What it saw

    /// The paths of all requests, in the order in which they came.
    var requestedPaths: [String] { self.state.withLock { $0.requests.map(\.path) } }

    func requests(for path: String) -> [DownloadRequest] {
        self.state.withLock { state in state.requests.filter { $0.path == path }.map(\.request) }
    }

    func requestCount(for path: String) -> Int {
        self.state.withLock { $0.requestCount(for: path) }
    }

    /// The number of requests for a path that were cancelled before their response.
    func cancellationCount(for path: String) -> Int {
        self.state.withLock { $0.cancellations[path, default: 0] }
    }

    /// How urgent the requests for a path were as they came, and what that became.
    func priorities(for path: String) -> [DownloadPriority] {
        self.state.withLock { $0.priorities[path, default: []] }
    }

    /// Returns once a path has been asked for `count` times in all.
    func waitForRequests(_ count: Int = 1, for path: String) async {
        await self.wait { $0.requestCount(for: path) >= count }
    }

    /// Returns once `count` requests in all for a path were cancelled.
    func waitForCancellations(_ count: Int = 1, for path: String) async {
        await self.wait { $0.cancellations[path, default: 0] >= count }
    }

    /// Returns once `count` urgencies in all were seen of a path: one of each request, and one of each change.
    func waitForPriorities(_ count: Int, for path: String) async {
        await self.wait { $0.priorities[path, default: []].count >= count }
    }

    // MARK: ImageFetching

    func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        let path = Self.path(of: request.url)
        let requestTime = Date()
        // What a request gets is settled before any test hears of the request.
        let script = self.nextScript(for: path).settled(for: request)
        await self.update { state in
            state.requests.append((path, request))
            state.priorities[path, default: []].append(observer.priority())
        }
        do {
            let body = try await self.body(of: script, for: request, observer)
            try Task.checkCancellation()
            return DownloadResponse(
                body: body,
                url: request.url,
                status: script.status,
                headers: script.headers,
                requestTime: requestTime
            )
        } catch is CancellationError {
            await self.update { $0.cancellations[path, default: 0] += 1 }
            throw CancellationError()
        }
    }

    func priorityDidChange(
        of request: DownloadRequest,
        to priority: @escaping @Sendable () -> DownloadPriority
    ) async {
        await self.update { $0.priorities[Self.path(of: request.url), default: []].append(priority()) }
    }

    private func nextScript(for path: String) -> ScriptedResponse {
        self.state.withLock { state in
            if let first = state.sequences[path]?.first {
                state.sequences[path]?.removeFirst()
                return first
            }
            return state.scripts[path] ?? .body(Array("no script".utf8), status: 404)
        }
    }

    private func body(
        of script: ScriptedResponse,
        for request: DownloadRequest,
        _ observer: FetchObserver
    ) async throws -> Data {
        var body = Data()
        for step in script.steps {
            switch step {
            case .send(let bytes):
                body.append(contentsOf: bytes)
                guard script.isSuccess else { continue }
                observer.didProgress(
                    TransferProgress(receivedBytes: Int64(body.count), expectedBytes: script.declaredLength)
                )
                observer.didReceive?(Data(bytes))
            case .wait(let gate): try await gate.waitUnlessCancelled()
            case .fail(let code):
                throw DownloadError(code: code, message: "It was scripted to fail.", url: request.url)
            }
        }
        return body
    }

    // MARK: Parts

    /// The path of a URL, whatever its spelling; queries are not looked at.
    private static func path(of url: URL) -> String { url.standardized.path }

    /// Changes the state, then lets those go on that waited for what it has become.
    private func update(_ change: @Sendable (inout State) -> Void) async {
        let satisfied = self.state.withLock { state -> [Gate] in
            change(&state)
            let satisfied = state.observers.filter { $0.condition(state) }
            if !satisfied.isEmpty { state.observers = state.observers.filter { !$0.condition(state) } }
            return satisfied.map(\.gate)
        }
        for gate in satisfied { await gate.open() }
    }

    private func wait(until condition: @escaping @Sendable (State) -> Bool) async {
        let gate = Gate()
        let isSatisfied = self.state.withLock { state -> Bool in
            if condition(state) { return true }
            state.observers.append(Observer(condition: condition, gate: gate))
            return false
        }
        // A test whose time is over waits no longer.
        if !isSatisfied { try? await gate.waitUnlessCancelled() }
    }
}

/// What a ``ScriptedOrigin`` does with a request: steps, one after the other, whose bytes are the body.
struct ScriptedResponse: Sendable {
    /// One thing that the origin does.
    enum Step: Sendable {
        /// Receives these bytes of the body, and shows them where it is that of a success.
        case send([UInt8])
        /// Waits until the test opens the door; a cancelled request waits no longer.
        case wait(Gate)
        /// Fails, whatever was received.
        case fail(DownloadError.Code)
    }

    /// The status, or `nil` for none, as of a file.
    var status: Int? = 200
    var headers: HeaderFields = [:]
    /// What the progress is told of the length of the body.
    var declaredLength: Int64?
    var steps: [Step]
    /// Makes the response of the request, in place of all that.
    private var answer: (@Sendable (DownloadRequest) -> ScriptedResponse)?

    init(_ steps: [Step]) {
        self.steps = steps
    }

    /// A complete and faultless response.
    static func body(
        _ body: some Collection<UInt8>,
        status: Int? = 200,
        headers: HeaderFields = [:]
    ) -> ScriptedResponse {
        self.pieces(body.isEmpty ? [] : [Array(body)], status: status, headers: headers)
    }

    /// A body that comes in pieces; the test moves each but the first by opening a door.
    static func pieces(
        _ pieces: [[UInt8]],
        movedBy gates: [Gate] = [],
        status: Int? = 200,
        headers: HeaderFields = [:]
    ) -> ScriptedResponse {
        var steps: [Step] = []
        for (index, piece) in pieces.enumerated() {
            if index > 0, index <= gates.count { steps.append(.wait(gates[index - 1])) }
            steps.append(.send(piece))
        }
        var response = ScriptedResponse(steps)
        response.status = status
        response.headers = headers
        response.declaredLength = Int64(pieces.reduce(0) { $0 + $1.count })
        return response
    }

    /// A complete response that comes only when the door opens.
    static func held(by gate: Gate, body: [UInt8]) -> ScriptedResponse {
        var response = Self.body(body)
        response.steps.insert(.wait(gate), at: 0)
        return response
    }

    /// What the closure makes of the request.
    static func answer(_ answer: @escaping @Sendable (DownloadRequest) -> ScriptedResponse) -> ScriptedResponse {
        var response = ScriptedResponse([])
        response.answer = answer
        return response
    }

    /// A failure instead of an answer.
    static func failure(_ code: DownloadError.Code) -> ScriptedResponse { ScriptedResponse([.fail(code)]) }

    /// No answer at all, until the request is cancelled.
    static var silence: ScriptedResponse { ScriptedResponse([.wait(Gate())]) }
    /// The connection breaks before an answer.
    static let reset = ScriptedResponse.failure(.connectionLost)

    // MARK: Parts

    fileprivate var isSuccess: Bool { (200..<300).contains(self.status ?? 200) }

    fileprivate func settled(for request: DownloadRequest) -> ScriptedResponse {
        self.answer?(request).settled(for: request) ?? self
    }
}
