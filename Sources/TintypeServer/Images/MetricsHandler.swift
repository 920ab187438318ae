// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// Answers `/metrics` and `/health` on an address of their own.
struct MetricsHandler: RequestHandling {
    private let handler: ImageHandler

    init(_ handler: ImageHandler) {
        self.handler = handler
    }

    func readyAnswer(to request: ServerRequest) -> ServerAnswer? { nil }

    func answer(to request: ServerRequest) async -> ServerAnswer {
        switch ImageHandler.path(of: request.head.target) {
        case "/metrics": await self.handler.metricsAnswer()
        case "/health": await self.handler.health()
        default: self.handler.refusal(404, "There are only /metrics and /health here.")
        }
    }

    func refusal(ofBodyOf head: RequestHead) -> ServerAnswer? { nil }

    func bodyLimit(of request: RequestHead) -> Int { 0 }

    func refusal(_ status: Int, _ reason: String) -> ServerAnswer { self.handler.refusal(status, reason) }

    func didEnd(_ exchange: ExchangeRecord) {}

    func didEndTurn() {}
}
