import FoundationEssentials
import TestSupport
import Tintype
import TintypeConcurrency

/// An origin of one picture that changes, and that answers conditional requests.
///
/// The picture of revision `n` is `10 + n` pixels wide and has the tag `"n"`.
final class RevisingOrigin: Sendable {
    private struct State {
        var revision = 0
        var headers: [(String, String)] = []
        var requests: [HeaderFields] = []
        var failure: FaultyResponse?
        var variesOn: String?
    }

    private let server: FaultyOrigin
    private let state = Locked(State())

    init(_ headers: [(String, String)] = []) throws {
        self.server = try FaultyOrigin()
        self.state.withLock { $0.headers = headers }
        self.server.script("/picture", FaultyResponse([.answer { [weak self] in self?.answer($0) ?? .reset }]))
    }

    var url: URL { self.server.url("/picture") }

    /// The fields of each request that came.
    var requests: [HeaderFields] { self.state.withLock { $0.requests } }

    /// Changes the picture.
    func revise() {
        self.state.withLock { $0.revision += 1 }
    }

    /// What is sent beside the tag from now on.
    func setHeaders(_ headers: [(String, String)]) {
        self.state.withLock { $0.headers = headers }
    }

    /// What is done instead of an answer from now on.
    func fail(with failure: FaultyResponse?) {
        self.state.withLock { $0.failure = failure }
    }

    /// Makes the picture one column wider for each letter of a request field.
    func vary(on name: String) {
        self.state.withLock { $0.variesOn = name }
    }

    func waitForRequests(_ count: Int) async {
        // Once a request is among these, its answer is settled.
        await until { self.requests.count >= count }
    }

    func waitForDisconnect() async {
        await self.server.waitForDisconnect(from: "/picture")
    }

    private func answer(_ head: [UInt8]) -> FaultyResponse {
        let headers = CacheTestOrigin.parse(head).headers
        let state = self.state.withLock { state in
            state.requests.append(headers)
            return state
        }
        if let failure = state.failure { return failure }
        var fields = state.headers
        var width = 10 + state.revision
        var tag = "\"\(state.revision)\""
        if let name = state.variesOn {
            let value = headers[name] ?? ""
            width += value.utf8.count
            tag = "\"\(state.revision)-\(value.utf8.count)\""
            fields.append(("Vary", name))
        }
        fields.append(("ETag", tag))
        if headers["If-None-Match"] == tag { return FaultyResponse([FaultyResponse.head(304, fields)]) }
        guard let body = try? makePNG(width: width) else { return .reset }
        return .body(body, headers: fields)
    }
}
