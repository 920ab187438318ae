// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency

/// An image at a scripted origin that changes, and about which conditional requests are answered.
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

    /// Puts the image at an origin, which the loaders of a test ask.
    init(_ headers: HeaderFields = [:], at origin: ScriptedOrigin) {
        self.origin = origin
        self.state = Locked(State(headers: headers))
        origin.script(Self.path, .answer { [weak self] in self?.answer(to: $0.headers) ?? .reset })
    }

    var url: URL { self.origin.url(Self.path) }

    /// The fields of each request that came.
    var requests: [HeaderFields] { self.origin.requests(for: Self.path).map(\.headers) }

    /// Changes the image.
    func revise() {
        self.state.withLock { $0.revision += 1 }
    }

    /// What is sent beside the tag from now on.
    func setHeaders(_ headers: HeaderFields) {
        self.state.withLock { $0.headers = headers }
    }

    /// What is done instead of an answer from now on.
    func fail(with failure: ScriptedResponse?) {
        self.state.withLock { $0.failure = failure }
    }

    /// Makes the image one column wider for each letter of a request field.
    func vary(on name: String) {
        self.state.withLock { $0.variesOn = name }
    }

    /// Returns once the image was asked for `count` times, and what the last one gets is settled.
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
