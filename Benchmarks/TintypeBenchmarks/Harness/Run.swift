// SPDX-License-Identifier: Apache-2.0

import Foundation

/// One run over the chosen benchmarks: its rows as they arrive, and then a conclusion.
struct Run: Sendable {
    private let machine = Machine.current()
    private var rows: [Row] = []
    /// The benchmarks that could not run, and the reasons.
    private var skipped: [String: String] = [:]

    /// Measures `benchmarks` in order, and prints each row as soon as it is known.
    static func measure(_ benchmarks: [Benchmark], in session: Session) async -> Run {
        var run = Run()
        let table = Table()
        Console.show("\(run.machine.processor), \(run.machine.cores) cores, load \(run.machine.loadBefore)")
        Console.show("images: \(session.photographs.origin)")
        Console.show(
            "figures: median [quartiles] of \(session.plan.rounds) rounds; over 1 times as good is in our favour\n"
        )
        Console.show(table.header)
        for benchmark in benchmarks {
            do {
                let rows = try await benchmark.run(session)
                for row in rows { Console.show(table.text(row)) }
                run.rows += rows
                run.showNotes(of: rows)
            } catch {
                run.skipped[benchmark.name] = "\(error)"
                Console.show("\(benchmark.name): skipped: \(error)")
            }
        }
        return run
    }

    /// The rows that fall short and the benchmarks that were not measured, by name.
    var conclusion: String {
        let short = self.rows.filter { $0.verdict == .short }
        let passed = self.rows.count { $0.verdict == .pass }
        var lines = [
            "\n\(passed) rows reach their bar, \(short.count) fall short. "
                + "Load average on \(self.machine.cores) cores: \(self.machine.loadBefore) before, \(Machine.load) after."
        ]
        lines += short.map { row in
            let ratio = row.ratio.map { ", \(Figure.text($0.median)) times as good as \(row.peer ?? "-")" } ?? ""
            let ours = row.ours.map { Figure.text($0.median) } ?? "-"
            let bars = row.bars.map(\.text).joined(separator: " ")
            return "  falls short: \(row.name) (\(row.metric.name)): \(ours) \(row.metric.unit)\(ratio), wanted \(bars)"
        }
        let unmeasured = Set(self.rows.filter { $0.verdict == .unmeasured }.map(\.name))
        if !unmeasured.isEmpty { lines.append("  not measured: \(unmeasured.sorted().joined(separator: ", "))") }
        lines += self.skipped.sorted { $0.key < $1.key }.map { "  skipped: \($0.key): \($0.value)" }
        return lines.joined(separator: "\n")
    }

    /// The whole run for the file.
    func report(_ options: Options, _ session: Session) async -> Report {
        Report(
            date: ISO8601DateFormatter().string(from: Date()),
            machine: self.machine,
            loadAfter: Machine.load,
            versions: await Versions.all(session),
            rounds: session.plan.rounds,
            sampleSeconds: session.plan.sampleSeconds,
            isQuick: options.isQuick,
            rows: self.rows,
            skipped: self.skipped
        )
    }

    private func showNotes(of rows: [Row]) {
        var shown: Set<String> = []
        for note in rows.flatMap(\.notes) where shown.insert(note).inserted { Console.show("    \(note)") }
    }
}
