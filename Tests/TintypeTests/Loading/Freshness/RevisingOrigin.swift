// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency

/// A changing image at a scripted origin that answers conditional requests.
///
/// The image of revision `n` is `10 + n` pixels wide and has the tag `"n"`.
final class RevisingOrigin: Sendable {
    private struct State {
        var revision = 0
        var headers: HeaderFields
        var failure: ScriptedResponse?
        var variesOn: String?
    }

    private static let path = "/image"

    private let origin: ScriptedOrigin
    private let state: Locked<State>

    /// Creates the image at the origin of a test's loaders.
    init(_ headers: HeaderFields = [:], at origin: ScriptedOrigin) {
        self.origin = origin
        self.state = Locked(State(headers: headers))
        origin.script(Self.path, .answer { [weak self] in self?.answer(to: $0.headers) ?? .reset })
    }

    var url: URL { self.origin.url(Self.path) }

    /// The header fields of each request.
    var requests: [HeaderFields] { self.origin.requests(for: Self.path).map(\.headers) }

    /// Changes the image.
    func revise() {
        self.state.withLock { $0.revision += 1 }
    }

    /// Sets the fields of all further responses, in addition to the tag.
    func setHeaders(_ headers: HeaderFields) {
        self.state.withLock { $0.headers = headers }
    }

    /// Replaces all further responses, or restores the image's own if `failure` is `nil`.
    func fail(with failure: ScriptedResponse?) {
        self.state.withLock { $0.failure = failure }
    }

    /// Makes the image one column wider for each letter of a request field.
    func vary(on name: String) {
        self.state.withLock { $0.variesOn = name }
    }

    /// Returns when the origin has received `count` requests and has chosen the response to the last one.
    func waitForRequests(_ count: Int) async {
        await self.origin.waitForRequests(count, for: Self.path)
    }

    func waitForCancellation() async {
        await self.origin.waitForCancellations(for: Self.path)
    }

    private func answer(to headers: HeaderFields) -> ScriptedResponse {
        let state = self.state.withLock { $0 }
        if let failure = state.failure { return failure }
        var fields = state.headers
        var width = 10 + state.revision
        var tag = "\"\(state.revision)\""
        if let name = state.variesOn {
            let value = headers[name] ?? ""
            width += value.utf8.count
            tag = "\"\(state.revision)-\(value.utf8.count)\""
            fields.append(name, for: "Vary")
        }
        fields.append(tag, for: "ETag")
        if headers["If-None-Match"] == tag { return .body([], status: 304, headers: fields) }
        guard let body = try? makePNG(width: width) else { return .reset }
        return .body(body, headers: fields)
    }
}
