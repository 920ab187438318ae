// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// Refuses requests whose `Host` field names another server, except for requests about the state of the server.
struct HostFilter: RequestHandling {
    let handler: ImageHandler
    let hosts: AllowedHosts

    func readyAnswer(to request: ServerRequest) -> ServerAnswer? {
        self.misdirection(of: request.head) ?? self.handler.readyAnswer(to: request)
    }

    func answer(to request: ServerRequest) async -> ServerAnswer { await self.handler.answer(to: request) }

    func refusal(ofBodyOf head: RequestHead) -> ServerAnswer? {
        self.misdirection(of: head) ?? self.handler.refusal(ofBodyOf: head)
    }

    func bodyLimit(of request: RequestHead) -> Int { self.handler.bodyLimit(of: request) }

    func refusal(_ status: Int, _ reason: String) -> ServerAnswer { self.handler.refusal(status, reason) }

    func didEnd(_ exchange: ExchangeRecord) { self.handler.didEnd(exchange) }

    func didEndTurn() { self.handler.didEndTurn() }

    /// Returns the refusal of a request to another host, or `nil`.
    private func misdirection(of head: RequestHead) -> ServerAnswer? {
        guard !self.hosts.contains(head.host), !self.handler.status.answers(head.path) else {
            return nil
        }
        return self.handler.refusal(421, "The Host field names another server. --host permits more names.")
    }
}
