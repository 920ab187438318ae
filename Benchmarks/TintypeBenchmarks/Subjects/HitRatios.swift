// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCaching

/// How many requests a memory tier can answer, by policy, on recorded traces.
enum HitRatios {
    static let benchmarks = [
        Benchmark(name: "hit-ratio", summary: "share of requests answered on recorded traces, by eviction policy") {
            try await measure($0)
        }
    ]

    /// The capacities, in hundredths of the weight of all keys of a trace.
    private static let shares = [1, 5, 10, 20]
    private static let titles = ["LRU", "S3-FIFO", "SIEVE", "W-TinyLFU", "LIRS", "tintype", "optimum"]
    private static let (lru, lfu, ours, optimum) = (0, 3, 5, 6)

    /// The ratios of all policies at one capacity, in the order of the titles.
    private struct Line: Sendable {
        let trace: String
        let share: Int
        let isByWeight: Bool
        let ratios: [Double]

        var text: String {
            let name = (self.isByWeight ? "\(self.trace), bytes" : self.trace).padding(30)
            return name + "\(self.share) %".padding(6)
                + self.ratios.map { ($0.isNaN ? "-" : String(format: "%.4f", $0)).padding(10) }.joined()
        }
    }

    private static func measure(_ session: Session) async throws -> [Row] {
        guard let folder = session.photographs.traces else { throw Unavailable("there is no corpus with traces") }
        var lines: [Line] = []
        Console.show("trace".padding(36) + self.titles.map { $0.padding(10) }.joined())
        for trace in try await CacheTrace.all(in: folder) {
            for share in self.shares {
                let added = self.lines(of: trace, share)
                for line in added { Console.show(line.text) }
                lines += added
            }
        }
        let means = self.titles.indices.map { title in
            let ratios = lines.filter { !$0.isByWeight }.map { $0.ratios[title] }.filter { !$0.isNaN }
            return ratios.reduce(0, +) / Double(ratios.count)
        }
        Console.show(Line(trace: "mean by requests", share: 0, isByWeight: false, ratios: means).text)
        let deviation = try self.deviation(of: lines, from: folder.appendingPathComponent("baseline.tsv"))
        return self.rows(lines, means, deviation)
    }

    private static func rows(_ lines: [Line], _ means: [Double], _ deviation: Double) -> [Row] {
        let ratio = Metric.plain("hits", "ratio", lowerIsBetter: false)
        let leads = lines.map { $0.ratios[self.ours] - $0.ratios[self.lru] }
        return [
            Row(
                name: "hit-ratio-simulator",
                metric: .plain("error", "ratio", lowerIsBetter: true),
                ours: Summary([deviation]),
                bars: [.atMost(0.000_051)],
                notes: ["the largest difference from independent figures for LRU and the optimum, which have 4 digits"]
            ),
            Row(
                name: "hit-ratio-mean",
                metric: ratio,
                peer: "W-TinyLFU",
                ours: Summary([means[self.ours]]),
                theirs: Summary([means[self.lfu]]),
                ratio: Summary([means[self.ours] / means[self.lfu]]),
                bars: [.times(1)]
            ),
            Row(
                name: "hit-ratio-least-lead",
                metric: ratio,
                peer: "LRU",
                ours: Summary([leads.min() ?? .nan]),
                bars: [.atLeast(0)],
                notes: ["the least of the differences from LRU, over all traces and capacities"]
            ),
        ]
    }

    private static func lines(of trace: CacheTrace, _ share: Int) -> [Line] {
        let capacity = trace.uniqueWeight * share / 100
        let ratios = [
            PolicyAlone<LRUPolicy>.replay(trace, capacity: capacity),
            PolicyAlone<S3FIFOPolicy>.replay(trace, capacity: capacity),
            PolicyAlone<SievePolicy>.replay(trace, capacity: capacity),
            PolicyAlone<WTinyLFUPolicy>.replay(trace, capacity: capacity),
            PolicyAlone<LIRSPolicy>.replay(trace, capacity: capacity),
            TintypePolicy.replay(trace, capacity: capacity),
        ]
        // For entries of several sizes the optimum is not known.
        let optimum = trace.isSized ? .nan : BeladyOptimum.hitRatio(of: trace, capacity: capacity)
        let byCount = ratios.map(\.byCount) + [optimum]
        let line = Line(trace: trace.name, share: share, isByWeight: false, ratios: byCount)
        guard trace.isSized else { return [line] }
        let byWeight = ratios.map(\.byWeight) + [.nan]
        return [line, Line(trace: trace.name, share: share, isByWeight: true, ratios: byWeight)]
    }

    /// The largest difference from the corpus' own figures.
    private static func deviation(of lines: [Line], from file: URL) throws -> Double {
        var largest = 0.0
        for fields in try CacheTrace.lines(of: file).dropFirst() where fields.count == 6 {
            for (column, isByWeight, title) in [(3, false, self.lru), (4, true, self.lru), (5, false, self.optimum)] {
                guard let expected = Double(fields[column]) else { continue }
                let line = lines.first {
                    $0.trace == fields[0] && "\($0.share)" == fields[1] && $0.isByWeight == isByWeight
                }
                guard let line else { throw Unavailable("\(fields[0]) at \(fields[1]) % was not replayed") }
                largest = max(largest, abs(line.ratios[title] - expected))
            }
        }
        return largest
    }
}

extension String {
    fileprivate func padding(_ width: Int) -> String {
        self + String(repeating: " ", count: max(1, width - self.count))
    }
}
