// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TintypeTestSupport

@testable import Tintype
@testable import TintypeCluster
@testable import TintypeDownloading
@testable import TintypeServer

@Suite struct ServerMetricsTests {
    private let metrics = ServerMetrics(version: "1.2.3")

    private func scrape() throws -> ScrapedText {
        var connections = ConnectionActor.Counters()
        connections.openConnections = 7
        connections.acceptedConnections = 70
        connections.waitingRequests = 4
        connections.leftRequests = 2
        connections.expiredConnections = 1
        var cluster = ClusterStatistics()
        (cluster.calls, cluster.failedCalls, cluster.refusedCalls) = (90, 8, 11)
        (cluster.waits, cluster.waitsOver, cluster.sharedFailures) = (12, 3, 6)
        (cluster.damagedEntries, cluster.circuitOpenings, cluster.leases) = (9, 13, 14)
        cluster.isCircuitOpen = true
        return try ScrapedText(
            self.metrics.text(
                connections: connections,
                admission: (count: 5, limit: 36, oldest: .milliseconds(250)),
                cluster: cluster,
                loader: LoaderStatistics()
            )
        )
    }

    @Test func `requests count by status and format`() throws {
        for _ in 0..<3 { self.metrics.record(try ExchangeSamples.record()) }
        self.metrics.record(try ExchangeSamples.record(note: AnswerNote(cache: "network", format: "jpeg")))
        self.metrics.record(try ExchangeSamples.record(status: 404, note: AnswerNote()))
        self.metrics.record(try ExchangeSamples.record(note: AnswerNote(cache: "disk", format: "svg")))
        let values = try self.scrape().values
        #expect(values[#"tintype_http_requests_total{status="200",format="webp"}"#] == 3)
        #expect(values[#"tintype_http_requests_total{status="200",format="jpeg"}"#] == 1)
        #expect(values[#"tintype_http_requests_total{status="404",format="none"}"#] == 1)
        #expect(values[#"tintype_http_requests_total{status="200",format="other"}"#] == 1)
        #expect(values.keys.count(where: { $0.hasPrefix("tintype_http_requests_total") }) == 4)
    }

    @Test(arguments: [(-1, 100), (0, 100), (99, 100), (100, 100), (599, 599), (600, 599), (Int.max, 599)])
    func `a status that is out of range counts as the nearest one`(status: Int, counted: Int) throws {
        self.metrics.record(try ExchangeSamples.record(status: status, note: AnswerNote()))
        let values = try self.scrape().values
        #expect(values["tintype_http_requests_total{status=\"\(counted)\",format=\"none\"}"] == 1)
    }

    @Test(arguments: [
        ("memory", "memory"), ("disk", "disk"), ("network", "network"), ("file", "file"), ("", "none"),
        ("redis", "other"),
    ])
    func `durations count by tier`(cache: String, label: String) throws {
        let note = AnswerNote(cache: cache, format: "png")
        self.metrics.record(try ExchangeSamples.record(duration: .microseconds(40), note: note))
        self.metrics.record(try ExchangeSamples.record(duration: .milliseconds(40), note: note))
        self.metrics.record(try ExchangeSamples.record(duration: .seconds(40), note: note))
        let values = try self.scrape().values
        let name = "tintype_http_request_duration_seconds"
        #expect(values["\(name)_bucket{cache=\"\(label)\",le=\"0.0001\"}"] == 1)
        #expect(values["\(name)_bucket{cache=\"\(label)\",le=\"0.05\"}"] == 2)
        #expect(values["\(name)_bucket{cache=\"\(label)\",le=\"+Inf\"}"] == 3)
        #expect(values["\(name)_count{cache=\"\(label)\"}"] == 3)
    }

    @Test func `bytes count, and answers that were not sent completely`() throws {
        self.metrics.record(try ExchangeSamples.record(byteCount: 1_000))
        self.metrics.record(try ExchangeSamples.record(byteCount: 10, isWhole: false))
        self.metrics.record(try ExchangeSamples.record(status: 499, byteCount: 0, isWhole: false))
        let values = try self.scrape().values
        #expect(values["tintype_http_sent_bytes_total"] == 1_010)
        #expect(values["tintype_http_answers_cut_total"] == 1)
    }

    @Test(arguments: [
        ("overload", "overload"), ("client", "client"), ("addressNotAllowed", "network_policy"),
        ("hostNotAllowed", "network_policy"), ("forbidden", "signature"), ("invalidSource", "source"),
        ("downloadRefused", "source"),
    ])
    func `refusals count by reason`(code: String, reason: String) throws {
        for _ in 0..<2 {
            self.metrics.record(try ExchangeSamples.record(status: 403, note: AnswerNote(errorCode: code)))
        }
        self.metrics.record(try ExchangeSamples.record(status: 404, note: AnswerNote(errorCode: "badStatus")))
        let values = try self.scrape().values
        #expect(values["tintype_http_errors_total{code=\"\(code)\"}"] == 2)
        #expect(values[#"tintype_http_errors_total{code="badStatus"}"#] == 1)
        for other in RefusalReason.allCases {
            let count = values["tintype_http_refusals_total{reason=\"\(other.rawValue)\"}"]
            #expect(count == (other.rawValue == reason ? 2 : 0))
        }
    }

    @Test func `any number of error codes makes a limited number of series`() throws {
        for number in 0..<1_000 {
            self.metrics.record(try ExchangeSamples.record(status: 502, note: AnswerNote(errorCode: "code\(number)")))
        }
        let values = try self.scrape().values
        #expect(values.keys.count(where: { $0.hasPrefix("tintype_http_errors_total") }) == 101)
        #expect(values[#"tintype_http_errors_total{code="other"}"#] == 900)
    }

    @Test func `phases of new images count once`() throws {
        var load = LoadMetrics()
        load.queue = .milliseconds(2)
        load.transfer = TransferMetrics()
        load.transfer?.total = .milliseconds(80)
        load.decode = .milliseconds(20)
        load.encode = .milliseconds(4)
        self.metrics.record(load)
        load.isJoined = true
        self.metrics.record(load)
        let values = try self.scrape().values
        let name = "tintype_http_phase_duration_seconds"
        #expect(values["\(name)_count{phase=\"download\"}"] == 1)
        #expect(values["\(name)_bucket{phase=\"download\",le=\"0.05\"}"] == 0)
        #expect(values["\(name)_bucket{phase=\"download\",le=\"0.1\"}"] == 1)
        for phase in ["queue", "decode", "encode"] { #expect(values["\(name)_count{phase=\"\(phase)\"}"] == 1) }
        // These did not take place.
        for phase in ["disk", "gate", "lane", "transform", "store"] {
            #expect(values["\(name)_count{phase=\"\(phase)\"}"] == 0)
        }
    }

    @Test func `the text has the figures of connections, of the queue, of the process and of the loader`() throws {
        let text = try self.scrape()
        let expected: [String: Double] = [
            #"tintype_build_info{version="1.2.3"}"#: 1, "tintype_http_requests_in_progress": 4,
            "tintype_http_clients_left_total": 2, "tintype_http_connections_open": 7,
            "tintype_http_connections_accepted_total": 70, "tintype_http_connections_expired_total": 1,
            "tintype_http_admission_requests": 5, "tintype_http_admission_limit": 36,
            "tintype_http_admission_oldest_seconds": 0.25,
            "tintype_cluster_calls_total": 90, "tintype_cluster_failed_calls_total": 8,
            "tintype_cluster_refused_calls_total": 11, "tintype_cluster_waits_total": 12,
            "tintype_cluster_waits_over_total": 3, "tintype_cluster_shared_failures_total": 6,
            "tintype_cluster_damaged_entries_total": 9, "tintype_cluster_circuit_openings_total": 13,
            "tintype_cluster_locks": 14, "tintype_cluster_circuit_open": 1,
            "tintype_downloads_total": 0,
        ]
        for (series, value) in expected { #expect(text.values[series] == value, "\(series)") }
        #expect(text.types["process_cpu_seconds_total"] == "counter")
        #expect(text.types["tintype_http_request_duration_seconds"] == "histogram")
    }

    @Test func `the figures of the process are plausible`() throws {
        let values = try self.scrape().values
        let resident = try #require(values["process_resident_memory_bytes"])
        let virtual = try #require(values["process_virtual_memory_bytes"])
        #expect(resident > 1_000_000 && virtual >= resident)
        let seconds = try #require(values["process_cpu_seconds_total"])
        #expect(seconds > 0)
        // Standard output and standard error at least.
        let descriptors = try #require(values["process_open_fds"])
        let maximum = try #require(values["process_max_fds"])
        #expect(descriptors >= 2 && maximum >= descriptors)
        // The process is less than a day old.
        let start = try #require(values["process_start_time_seconds"])
        #expect(abs(start - Double(time(nil))) < 86_400)
    }

    @Test(.enabled(if: AllocatedMemory.isMeasured)) func `the memory of the counters does not grow`() throws {
        let exchange = try ExchangeSamples.record(note: AnswerNote(cache: "disk", format: "png", errorCode: "tooSlow"))
        // The first one sets up shared data, and the name of the error.
        self.metrics.record(exchange)
        let peak = AllocatedMemory.peak {
            for _ in 0..<10_000 { self.metrics.record(exchange) }
        }
        #expect(peak.byteCount < 4_096)
    }
}
