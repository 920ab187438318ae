// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency
import TintypeTestSupport

/// An origin in memory that responds as scripted, without a socket.
///
/// ```swift
/// let origin = ScriptedOrigin(["/image": .body(try makePNG())])
/// let loader = try LoaderFixture(origin: origin).makeLoader()
/// ```
///
/// It records requests, priority changes and cancellations, and lets tests wait for them. It responds with 404 to
/// paths without a script.
final class ScriptedOrigin: ImageFetching {
    private struct State {
        var scripts: [String: ScriptedResponse]
        var sequences: [String: [ScriptedResponse]] = [:]
        /// All requests, in the order of arrival.
        var requests: [(path: String, request: DownloadRequest)] = []
        /// The priorities of the requests for each path, at arrival and after each change.
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

    /// Returns the URL of a path.
    ///
    /// The path starts with a slash.
    func url(_ path: String, host: String = "origin.example") -> URL {
        guard let url = URL(string: "https://\(host)\(path)") else { preconditionFailure("\(path) is not a path") }
        return url
    }

    /// Sets the response to all further requests for a path.
    func script(_ path: String, _ response: ScriptedResponse) {
        self.state.withLock { $0.scripts[path] = response }
    }

    /// Sets the responses to the next requests for a path, one each.
    ///
    /// Later requests get the path's usual response.
    func script(_ path: String, sequence: [ScriptedResponse]) {
        self.state.withLock { $0.sequences[path] = sequence }
    }

    // MARK: Records

    /// The paths of all requests, in the order of arrival.
    var requestedPaths: [String] { self.state.withLock { $0.requests.map(\.path) } }

    func requests(for path: String) -> [DownloadRequest] {
        self.state.withLock { state in state.requests.filter { $0.path == path }.map(\.request) }
    }

    func requestCount(for path: String) -> Int {
        self.state.withLock { $0.requestCount(for: path) }
    }

    /// Returns the number of requests for a path that were cancelled before their response.
    func cancellationCount(for path: String) -> Int {
        self.state.withLock { $0.cancellations[path, default: 0] }
    }

    /// Returns the priorities of the requests for a path, at arrival and after each change.
    func priorities(for path: String) -> [DownloadPriority] {
        self.state.withLock { $0.priorities[path, default: []] }
    }

    /// Returns when the origin has received `count` requests for a path in all.
    func waitForRequests(_ count: Int = 1, for path: String) async {
        await self.wait { $0.requestCount(for: path) >= count }
    }

    /// Returns when `count` requests for a path have been cancelled in all.
    func waitForCancellations(_ count: Int = 1, for path: String) async {
        await self.wait { $0.cancellations[path, default: 0] >= count }
    }

    /// Returns when `count` priorities of a path are recorded, one for each request and one for each change.
    func waitForPriorities(_ count: Int, for path: String) async {
        await self.wait { $0.priorities[path, default: []].count >= count }
    }

    // MARK: ImageFetching

    func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        let path = Self.path(of: request.url)
        let requestTime = Date()
        // Choose the response before any test learns of the request.
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

    /// Returns the path of a URL in any spelling, without its query.
    private static func path(of url: URL) -> String { url.standardized.path }

    /// Changes the state, and resumes the waiters whose condition it now meets.
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
        // A test that is cancelled at its time limit stops waiting.
        if !isSatisfied { try? await gate.waitUnlessCancelled() }
    }
}

/// A scripted response: steps that a ``ScriptedOrigin`` takes in order, and whose bytes form the body.
struct ScriptedResponse: Sendable {
    /// A step of a response.
    enum Step: Sendable {
        /// Adds bytes to the body, and reports them to the observer if the status is a success.
        case send([UInt8])
        /// Waits until the test opens the gate or the request is cancelled.
        case wait(Gate)
        /// Fails, whatever bytes came before.
        case fail(DownloadError.Code)
    }

    /// The status, or `nil` if the response has no status, like a file.
    var status: Int? = 200
    var headers: HeaderFields = [:]
    /// The length of the body in progress reports.
    var declaredLength: Int64?
    var steps: [Step]
    /// Makes the response from the request, instead of the other properties.
    private var answer: (@Sendable (DownloadRequest) -> ScriptedResponse)?

    init(_ steps: [Step]) {
        self.steps = steps
    }

    /// Returns a complete response.
    static func body(
        _ body: some Collection<UInt8>,
        status: Int? = 200,
        headers: HeaderFields = [:]
    ) -> ScriptedResponse {
        self.pieces(body.isEmpty ? [] : [Array(body)], status: status, headers: headers)
    }

    /// Returns a body in pieces.
    ///
    /// The test releases each piece after the first by opening a gate.
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

    /// Returns a complete response that waits until the gate opens.
    static func held(by gate: Gate, body: [UInt8]) -> ScriptedResponse {
        var response = Self.body(body)
        response.steps.insert(.wait(gate), at: 0)
        return response
    }

    /// Returns a response that the closure makes from the request.
    static func answer(_ answer: @escaping @Sendable (DownloadRequest) -> ScriptedResponse) -> ScriptedResponse {
        var response = ScriptedResponse([])
        response.answer = answer
        return response
    }

    /// Returns a failure instead of a response.
    static func failure(_ code: DownloadError.Code) -> ScriptedResponse { ScriptedResponse([.fail(code)]) }

    /// A response that never arrives.
    ///
    /// Only cancellation ends the request.
    static var silence: ScriptedResponse { ScriptedResponse([.wait(Gate())]) }
    /// A connection that breaks before the response.
    static let reset = ScriptedResponse.failure(.connectionLost)

    // MARK: Parts

    fileprivate var isSuccess: Bool { (200..<300).contains(self.status ?? 200) }

    fileprivate func settled(for request: DownloadRequest) -> ScriptedResponse {
        self.answer?(request).settled(for: request) ?? self
    }
}
