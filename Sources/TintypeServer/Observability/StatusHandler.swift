// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Tintype
import TintypeCluster
import TintypeConcurrency
import TintypeHTTP

/// Answers `/health`, `/ready` and `/metrics`: the state of the server, and its counters.
///
/// It is also the handler of the address for metrics, where it answers only `/metrics` and `/health`.
final class StatusHandler: RequestHandling {
    private let configuration: ImageServer.Configuration
    private let answers: ImageAnswers
    private let loader: LoaderActor
    private let admission: Admission
    private let metrics: ServerMetrics
    private let cluster: Cluster?
    private let liveness = Liveness()
    /// Whether the server is shutting down, so that `/ready` answers 503.
    private let isEnding = Atomic(false)
    /// The connections of the server, for their counters.
    let connections = Locked<ConnectionActor?>(nil)

    init(
        _ configuration: ImageServer.Configuration,
        _ answers: ImageAnswers,
        _ loader: LoaderActor,
        _ admission: Admission,
        _ metrics: ServerMetrics,
        _ cluster: Cluster?
    ) {
        self.configuration = configuration
        self.answers = answers
        self.loader = loader
        self.admission = admission
        self.metrics = metrics
        self.cluster = cluster
    }

    /// Makes `/ready` answer 503 from now on.
    func beginEnding() {
        self.isEnding.store(true, ordering: .relaxed)
    }

    /// Whether a path asks for the status of the server.
    func answers(_ path: String) -> Bool {
        path == "/health" || path == "/ready" || path == "/metrics" || path == self.configuration.healthPath
    }

    /// Returns the answer for a path, or `nil` if the path does not ask for the status.
    func answer(for path: String) async -> ServerAnswer? {
        switch path {
        case "/metrics": await self.metricsAnswer()
        case "/ready": await self.readiness()
        case "/health", self.configuration.healthPath: self.health()
        default: nil
        }
    }

    /// Returns the answer of `/health`: 503 if decode lanes have been stuck for a minute.
    private func health() -> ServerAnswer {
        let progress = self.loader.laneProgress
        let isAlive = self.liveness.isAlive(ended: progress.ended, active: progress.active, at: .now)
        return .text(
            isAlive ? 200 : 503,
            isAlive
                ? "tintype is running\n" : "No decode or encode has ended for a minute, although lanes have work.\n",
            fields: ["Cache-Control": "no-cache"]
        )
    }

    /// Returns the answer of `/ready`: 200 if a balancer may send more requests, otherwise 503.
    ///
    /// The age of requests does not count, because some wait for slow origins. The server refuses requests before work
    /// waits for the whole of `queue-time`, so half of it is the limit here.
    private func readiness() async -> ServerAnswer {
        let figures = self.admission.figures(at: .now)
        let wait = self.loader.oldestWait(at: .now)
        let isReady =
            !self.isEnding.load(ordering: .relaxed) && figures.count < figures.limit
            && wait <= self.configuration.load.queueTime / 2
        let name = isReady ? "ready" : "not ready"
        let milliseconds = Int(wait / .milliseconds(1))
        return .text(
            isReady ? 200 : 503,
            "\(name): \(figures.count) of \(figures.limit) requests, longest wait for a lane \(milliseconds) ms\n",
            fields: ["Cache-Control": "no-cache"]
        )
    }

    private func metricsAnswer() async -> ServerAnswer {
        let figures = self.admission.figures(at: .now)
        let counters = await self.connections.withLock { $0 }?.counters ?? ConnectionActor.Counters()
        let text = self.metrics.text(
            connections: counters,
            admission: figures,
            cluster: self.cluster?.statistics,
            loader: await self.loader.statistics()
        )
        let type = "text/plain; version=0.0.4; charset=utf-8"
        return .text(200, text, type: type, fields: ["Cache-Control": "no-store"])
    }

    // MARK: RequestHandling

    func readyAnswer(to request: ServerRequest) -> ServerAnswer? { self.refusal(ofMethodOf: request.head) }

    func answer(to request: ServerRequest) async -> ServerAnswer {
        let path = request.head.path
        guard path == "/metrics" || path == "/health", let answer = await self.answer(for: path) else {
            return self.refusal(404, "There are only /metrics and /health here.")
        }
        return answer
    }

    func refusal(ofBodyOf head: RequestHead) -> ServerAnswer? { self.refusal(ofMethodOf: head) }

    private func refusal(ofMethodOf head: RequestHead) -> ServerAnswer? {
        head.method == .get || head.method == .head ? nil : self.answers.wrongMethod("GET, HEAD")
    }

    func bodyLimit(of request: RequestHead) -> Int { 0 }

    func refusal(_ status: Int, _ reason: String) -> ServerAnswer { self.answers.refusal(status, reason) }

    func didEnd(_ exchange: ExchangeRecord) {}

    func didEndTurn() {}
}
