// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeCluster
import TintypeConcurrency
import TintypePrometheus

/// The counters of a server, and their text for Prometheus.
///
/// The event loop records each exchange, without allocations. Any thread may read the text.
final class ServerMetrics: Sendable {
    private struct State {
        /// The numbers of requests: by status from 100 to 599, and by format within each.
        var requests = [UInt64](repeating: 0, count: ServerMetrics.statuses.count * ServerMetrics.formats.count)
        /// The durations of requests by tier.
        var durations = [LatencyHistogram](repeating: LatencyHistogram(), count: ServerMetrics.tiers.count)
        /// The durations of phases.
        var phases = [LatencyHistogram](repeating: LatencyHistogram(), count: ServerMetrics.phases.count)
        /// The numbers of failures by code.
        var errors: [String: UInt64] = [:]
        var sentBytes: UInt64 = 0
        var cutAnswers: UInt64 = 0

        mutating func count(error code: String) {
            let isKnown = self.errors[code] != nil || self.errors.count < ServerMetrics.maximumErrorCount
            self.errors[isKnown ? code : "other", default: 0] += 1
        }
    }

    private static let statuses = 100...599
    /// The formats in labels; the first stands for answers without an image, the last for all other formats.
    private static let formats = ["none", "jpeg", "webp", "png", "gif", "other"]
    /// The tiers in labels; the first stands for answers without an image, the last for all other tiers.
    private static let tiers = ["none", "memory", "disk", "network", "file", "other"]
    /// The most codes to count by name: the fetchers of a program may fail with any number of codes.
    private static let maximumErrorCount = 100
    private static let phases: [(name: String, duration: @Sendable (LoadMetrics) -> Duration)] = [
        ("queue", { $0.queue }),
        ("download", { $0.transfer?.total ?? .zero }),
        ("disk", { $0.disk }),
        ("gate", { $0.gate }),
        ("lane", { $0.lane }),
        ("decode", { $0.decode }),
        ("transform", { $0.transform }),
        ("encode", { $0.encode }),
        ("store", { $0.store }),
    ]

    private let version: String
    private let state = Locked(State())

    /// Creates counters that are zero.
    ///
    /// - Parameter version: The version of the server, for `tintype_build_info`.
    init(version: String) {
        self.version = version
    }

    /// Counts an exchange that has ended.
    func record(_ exchange: ExchangeRecord) {
        let status = min(max(exchange.status, Self.statuses.lowerBound), Self.statuses.upperBound)
        let format = Self.index(of: exchange.note.format, among: Self.formats)
        let request = (status - Self.statuses.lowerBound) * Self.formats.count + format
        let tier = Self.index(of: exchange.note.cache, among: Self.tiers)
        self.state.withLock { state in
            state.requests[request] += 1
            state.durations[tier].add(exchange.duration)
            state.sentBytes += UInt64(max(0, exchange.sentByteCount))
            // The counters of the connections include requests whose clients left before there was an answer.
            if !exchange.isWhole, exchange.status != 499 { state.cutAnswers += 1 }
            if !exchange.note.errorCode.isEmpty { state.count(error: exchange.note.errorCode) }
        }
    }

    /// Adds the durations of the phases of a load that made an image.
    ///
    /// Ignores a request that joined the load of another one, because the phases of a load count once.
    func record(_ metrics: LoadMetrics) {
        guard !metrics.isJoined else { return }
        self.state.withLock { state in
            for (index, phase) in Self.phases.enumerated() {
                let duration = phase.duration(metrics)
                if duration > .zero { state.phases[index].add(duration) }
            }
        }
    }

    private static func index(of name: String, among names: [String]) -> Int {
        name.isEmpty ? 0 : names.firstIndex(of: name) ?? names.count - 1
    }
}

// MARK: Text

extension ServerMetrics {
    /// Returns all figures as Prometheus reads them (`text/plain; version=0.0.4`).
    ///
    /// - Parameters:
    ///   - connections: The counters of the connections.
    ///   - admission: The number of requests that have a place, the limit on that number, and the age of the oldest
    ///     request.
    ///   - cluster: The counts of the server in its cluster, or `nil` if it is in none.
    ///   - loader: The statistics of the loader, whose own text follows.
    /// - Returns: The lines.
    func text(
        connections: ConnectionActor.Counters,
        admission: (count: Int, limit: Int, oldest: Duration),
        cluster: ClusterStatistics?,
        loader: LoaderStatistics
    ) -> String {
        let state = self.state.withLock { $0 }
        var text = PrometheusText(prefix: "tintype")
        text.begin("build_info", "gauge", "The version of the server, as a label.")
        text.add(1, [("version", self.version)])
        Self.write(state, to: &text)
        Self.write(connections, to: &text)
        text.write(
            "http_admission_requests",
            "gauge",
            "Requests whose images are being made, or wait for that.",
            admission.count
        )
        text.write(
            "http_admission_limit",
            "gauge",
            "The most requests whose images are made or wait at once.",
            admission.limit
        )
        text.write(
            "http_admission_oldest_seconds",
            "gauge",
            "The age of the oldest request whose image is made or waits.",
            admission.oldest / .seconds(1)
        )
        if let cluster { Self.write(cluster, to: &text) }
        var process = PrometheusText(prefix: "process")
        ProcessFigures.current.write(to: &process)
        return text.text + process.text + loader.prometheusText()
    }

    private static func write(_ cluster: ClusterStatistics, to text: inout PrometheusText) {
        text.write("cluster_calls_total", "counter", "Calls to Redis.", cluster.calls)
        text.write(
            "cluster_failed_calls_total",
            "counter",
            "Calls without a reply, or with an error.",
            cluster.failedCalls
        )
        text.write("cluster_refused_calls_total", "counter", "Calls that the circuit refused.", cluster.refusedCalls)
        text.write(
            "cluster_circuit_open",
            "gauge",
            "Whether a circuit of Redis is open.",
            cluster.isCircuitOpen ? 1 : 0
        )
        text.write(
            "cluster_circuit_openings_total",
            "counter",
            "Times that the first circuit opened.",
            cluster.circuitOpenings
        )
        text.write("cluster_locks", "gauge", "Locks that this server holds.", cluster.leases)
        text.write("cluster_waits_total", "counter", "Loads that waited for another server.", cluster.waits)
        text.write(
            "cluster_waits_over_total",
            "counter",
            "Loads that continued without the other server.",
            cluster.waitsOver
        )
        text.write(
            "cluster_shared_failures_total",
            "counter",
            "Failures that other servers had remembered.",
            cluster.sharedFailures
        )
        text.write(
            "cluster_damaged_entries_total",
            "counter",
            "Entries in Redis that were damaged or foreign.",
            cluster.damagedEntries
        )
    }

    private static func write(_ state: State, to text: inout PrometheusText) {
        text.begin("http_requests_total", "counter", "Requests that ended, by status and by format of the image.")
        for (index, count) in state.requests.enumerated() where count > 0 {
            let (status, format) = index.quotientAndRemainder(dividingBy: Self.formats.count)
            text.add(
                Int(clamping: count),
                [("status", "\(Self.statuses.lowerBound + status)"), ("format", Self.formats[format])]
            )
        }
        text.begin(
            "http_request_duration_seconds",
            "histogram",
            "The time from the head of a request to the end of its answer, by where the image came from."
        )
        for (tier, histogram) in zip(Self.tiers, state.durations) { text.add(histogram, [("cache", tier)]) }
        text.begin("http_phase_duration_seconds", "histogram", "How long the phases of new images took.")
        for (phase, histogram) in zip(Self.phases, state.phases) { text.add(histogram, [("phase", phase.name)]) }
        text.write(
            "http_sent_bytes_total",
            "counter",
            "Bytes of the bodies that were sent.",
            Int(clamping: state.sentBytes)
        )
        text.write(
            "http_answers_cut_total",
            "counter",
            "Answers that clients did not take to the end.",
            Int(clamping: state.cutAnswers)
        )
        text.begin("http_errors_total", "counter", "Answers to requests that failed, by the code of the error.")
        for (code, count) in state.errors.sorted(by: { $0.key < $1.key }) {
            text.add(Int(clamping: count), [("code", code)])
        }
        text.begin("http_refusals_total", "counter", "Requests that were refused, by reason.")
        for reason in RefusalReason.allCases {
            let count = reason.errorCodes.reduce(0) { $0 + (state.errors[$1] ?? 0) }
            text.add(Int(clamping: count), [("reason", reason.rawValue)])
        }
    }

    private static func write(_ connections: ConnectionActor.Counters, to text: inout PrometheusText) {
        text.write(
            "http_requests_in_progress",
            "gauge",
            "Requests whose answers are being made, or wait for their turn.",
            connections.waitingRequests
        )
        text.write(
            "http_clients_left_total",
            "counter",
            "Requests whose clients left before there was an answer.",
            Int(clamping: connections.leftRequests)
        )
        text.write("http_connections_open", "gauge", "Open connections.", connections.openConnections)
        text.write(
            "http_connections_accepted_total",
            "counter",
            "Connections that were accepted.",
            Int(clamping: connections.acceptedConnections)
        )
        text.write(
            "http_connections_expired_total",
            "counter",
            "Connections that a time limit or the limit of unsent bytes ended.",
            Int(clamping: connections.expiredConnections)
        )
    }
}
