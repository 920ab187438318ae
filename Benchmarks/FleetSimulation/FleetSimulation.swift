// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Prints how many requests of a fleet reach the shared tier and the origin, by the number of nodes.
///
/// `Docs/fleet.md` has the figures and what they mean.
@main
enum FleetSimulation {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        guard !arguments.contains("--help") else {
            print(Options.usage)
            return
        }
        do {
            let options = try Options(arguments)
            if let file = options.fitFile {
                try self.printFit(of: RequestTrace(path: file))
            } else {
                try self.run(options)
            }
        } catch let failure as Options.Failure {
            FileHandle.standardError.write(Data("FleetSimulation: \(failure). --help lists the options.\n".utf8))
            exit(2)
        } catch {
            FileHandle.standardError.write(Data("FleetSimulation: \(error)\n".utf8))
            exit(1)
        }
    }

    private static func run(_ options: Options) throws {
        var lines = [StudyRow.header.joined(separator: ",")]
        var timelines = ["nodes,sharing,balancing,second,origin_requests"]
        try Study(options: options).run { row in
            self.show(row, hasFew: options.nodeCounts.count == 1)
            lines.append(row.fields.joined(separator: ","))
            let name = row.fields[..<3].joined(separator: ",")
            timelines += row.outcome.originBySecond.enumerated().map { "\(name),\($0),\($1)" }
        }
        try self.write(lines, to: options.csvFile)
        try self.write(timelines, to: options.timelineFile)
    }

    /// Prints the figures of a fleet, in a line or, for a few fleets, one below the other.
    private static func show(_ row: StudyRow, hasFew: Bool) {
        let counts = row.counts
        print(
            "\(row.settings.nodeCount) nodes, \(row.settings.sharing.rawValue), \(row.settings.balancing.rawValue):",
            String(
                format: "per 1,000 requests %.2f origin, %.2f duplicates, %.1f shared tier; local hits %.4f",
                counts.perThousand(counts.originRequests),
                counts.perThousand(counts.duplicates),
                counts.perThousand(counts.sharedRequests),
                counts.localHitRatio
            )
        )
        if hasFew {
            print(
                """
                  requests \(counts.requests), local hits \(counts.localHits), joined \(counts.joins), lost \(counts.lost)
                  shared tier: look-ups \(counts.lookUps), hits \(counts.sharedHits), lock requests \
                \(counts.lockRequests), stores \(counts.stores)
                  origin requests \(counts.originRequests), duplicates \(counts.duplicates), most at once \
                \(counts.mostAtOnce); results made \(counts.renders)
                """
            )
        }
        fflush(nil)
    }

    private static func write(_ lines: [String], to path: String?) throws {
        guard let path else { return }
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: path))
    }

    /// Prints the exponent of Zipf's law for a trace, and how well the law describes it.
    ///
    /// The requests for the most popular keys depend on the law only. The hits of a cache also depend on the order of the
    /// requests, which the law does not describe.
    private static func printFit(of trace: RequestTrace) {
        let counts = trace.counts
        let ranked = counts.sorted(by: >)
        let keys = counts.count { $0 > 0 }
        print("requests \(trace.keys.count), keys \(keys), bytes of all keys \(trace.bytes.reduce(0, +))")
        guard let zipf = Zipf.fitted(to: counts) else { return }
        print("exponent by maximum likelihood: \(String(format: "%.4f", zipf.exponent))")
        let sampler = WeightedSampler(weights: zipf.weights)
        var generator = SeededGenerator(seed: 1)
        let drawn = trace.keys.map { _ in sampler.index(&generator) }
        for percent in [1, 5, 10, 20] {
            let top = keys * percent / 100
            let share = Double(ranked.prefix(top).reduce(0, +)) / Double(trace.keys.count)
            print(
                String(
                    format: "%2d %% of the keys: requests for the top %.4f, by the law %.4f; "
                        + "hits of a cache %.4f, by the law %.4f",
                    percent,
                    share,
                    zipf.share(ofTop: top),
                    self.hitRatio(trace.keys, entries: top),
                    self.hitRatio(drawn, entries: top)
                )
            )
        }
    }

    private static func hitRatio(_ keys: [Int], entries: Int) -> Double {
        var cache = LeastRecentlyUsedCache(capacity: entries)
        var hits = 0
        for key in keys {
            if cache.expiry(of: key, at: 0) != nil {
                hits += 1
            } else {
                cache.store(key, bytes: 1, expiry: .infinity, at: 0)
            }
        }
        return Double(hits) / Double(keys.count)
    }
}
