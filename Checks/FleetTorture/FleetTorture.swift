// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs three servers that share a Redis under load while Redis is away, and while random faults happen, and then loaders
/// that share a Redis Cluster whose slots move and whose master dies.
///
///     FleetTorture [SECONDS [SEED]]           both parts; default 600 seconds, and a seed that is drawn and printed
///     FleetTorture faults [SECONDS [SEED]]    only the outages and the random faults
///     FleetTorture cluster [SEED]             only the Redis Cluster, which takes about a minute
///
/// Exits with 1, and names the missed bar, if an answer is wrong, if a request fails although its server was not killed,
/// if a lock remains, if the servers wait for a Redis that is away, if they do not use it again, or if moved slots lose
/// entries.
@main
enum FleetTorture {
    static func main() async {
        var arguments = CommandLine.arguments.dropFirst()
        let part = arguments.first.flatMap { ["faults", "cluster"].contains($0) ? $0 : nil }
        if part != nil { arguments.removeFirst() }
        let seconds = part == "cluster" ? 0 : arguments.popFirst().flatMap { Double($0) } ?? 600
        let seed = arguments.first.flatMap { UInt64($0) } ?? .random(in: 0..<1_000_000)
        do {
            let hasNamespaces = try Network.enterNamespace()
            let watchdog = Task {
                try await Task.sleep(for: .seconds(seconds + 400))
                Report.say("failed: a request or a fault does not end")
                exit(1)
            }
            defer { watchdog.cancel() }
            let report = Report()
            if part != "cluster" {
                report.line("faults: \(seconds) s, seed \(seed)")
                try await FaultRounds(seed: seed, hasNamespaces: hasNamespaces, report: report).run(seconds: seconds)
            }
            if part != "faults" {
                report.line("cluster: seed \(seed)")
                try await ClusterRounds(seed: seed, report: report).run()
            }
            report.line(report.missed.isEmpty ? "passed" : "failed: \(report.missed.joined(separator: "; "))")
            exit(report.missed.isEmpty ? 0 : 1)
        } catch {
            Report.say("failed: \(error)")
            exit(1)
        }
    }
}
