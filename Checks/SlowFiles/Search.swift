// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeTestSupport

/// Changes recipes to increase the cost, for each kind of load and each measure separately.
struct Search {
    /// The quantity to maximise.
    enum Goal: CaseIterable {
        case seconds
        case secondsPerByte
        case takenPerCounted

        func score(_ measurement: Measurement, byteCount: Int) -> Double {
            switch self {
            case .seconds: measurement.seconds
            // Below some bytes it is the process that is measured.
            case .secondsPerByte: measurement.seconds / Double(max(byteCount, 200))
            case .takenPerCounted:
                Double(max(0, measurement.takenBytes - Budget.constantBytes))
                    / Double(max(measurement.countedBytes, 1 << 20))
            }
        }
    }

    private struct Candidate {
        let recipe: Recipe
        let byteCount: Int
        let measurement: Measurement
        let score: Double
    }

    private struct Island {
        let kind: Kind
        let goal: Goal
        var best: [Candidate] = []

        mutating func insert(_ candidate: Candidate) {
            self.best.append(candidate)
            self.best.sort { $0.score > $1.score }
            if self.best.count > 8 { self.best.removeLast() }
        }
    }

    private struct Finding {
        let path: String
        let text: String
        let size: Double
    }

    private let generator: any FileGenerator.Type
    private let probe: Probe
    private let folder: String
    private var random: SeededGenerator
    private var islands: [Island] = []
    private var findings: [String: Finding] = [:]
    private(set) var count = 0

    init(_ generator: any FileGenerator.Type, folder: String, workFolder: String, seed: UInt64) {
        self.generator = generator
        self.folder = folder
        self.probe = Probe(folder: workFolder, name: "\(getpid()).\(generator.coder)")
        self.random = SeededGenerator(seed: seed)
        for kind in generator.kinds {
            for goal in Goal.allCases { self.islands.append(Island(kind: kind, goal: goal)) }
        }
    }

    /// Whether no file was found that is over the budget.
    var isClean: Bool { self.findings.isEmpty }

    mutating func run(seconds: Int) throws {
        let end = time(nil) + seconds
        for values in self.generator.seeds where time(nil) < end {
            try self.evaluate(
                Recipe(self.generator.allGenes, values.merging(["pieceBytes": 16_000]) { own, _ in own }),
                self.generator.kinds
            )
        }
        while time(nil) < end {
            let island = self.islands[Int.random(in: 0..<self.islands.count, using: &self.random)]
            let any = Recipe.any(self.generator.allGenes, &self.random)
            let recipe: Recipe
            if let parent = island.best.randomElement(using: &self.random),
                Int.random(in: 0..<12, using: &self.random) > 0
            {
                let others = self.islands[Int.random(in: 0..<self.islands.count, using: &self.random)].best
                recipe = parent.recipe.mutated(with: others.first?.recipe ?? any, &self.random)
            } else {
                recipe = any
            }
            let other = self.generator.kinds.randomElement(using: &self.random) ?? island.kind
            try self.evaluate(recipe, other == island.kind ? [other] : [island.kind, other])
        }
    }

    private mutating func evaluate(_ recipe: Recipe, _ kinds: [Kind]) throws {
        let bytes = self.generator.bytes(recipe)
        let load = Load(allowsTruncated: recipe["allowsTruncated"] == 1, pieceBytes: recipe["pieceBytes"])
        self.count += 1
        for measurement in try self.probe.measure(bytes, kinds, load) {
            let measurement = try self.confirmed(measurement, bytes, load)
            for index in self.islands.indices where self.islands[index].kind == measurement.kind {
                let score = self.islands[index].goal.score(measurement, byteCount: bytes.count)
                self.islands[index].insert(
                    Candidate(recipe: recipe, byteCount: bytes.count, measurement: measurement, score: score)
                )
            }
            if let excess = Budget.excess(of: measurement) {
                try self.note(excess, measurement, bytes, recipe)
            }
        }
    }

    /// Measures an excessive load again, alone, because other work on the machine is not a finding.
    private func confirmed(_ measurement: Measurement, _ bytes: [UInt8], _ load: Load) throws -> Measurement {
        guard Budget.excess(of: measurement) != nil, measurement.seconds < 1.5 * Budget.seconds else {
            return measurement
        }
        var least = measurement
        for _ in 0..<2 {
            for again in try self.probe.measure(bytes, [measurement.kind], load) {
                if Budget.excess(of: again) == nil { return again }
                if again.seconds < least.seconds { least = again }
            }
        }
        return least
    }

    /// Keeps the worst file of each kind of load and of excess.
    private mutating func note(
        _ excess: (what: String, text: String),
        _ measurement: Measurement,
        _ bytes: [UInt8],
        _ recipe: Recipe
    ) throws {
        let name = "slow-\(measurement.kind.rawValue)-\(excess.what)"
        let size =
            excess.what == "memory" ? Double(measurement.takenBytes - measurement.countedBytes) : measurement.seconds
        if let known = self.findings[name], known.size * 1.2 > size { return }
        let path = "\(self.folder)/\(name).\(self.generator.coder)"
        try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        let text = "\(bytes.count) bytes, \(measurement.kind.rawValue): \(excess.text) (\(measurement.outcome))"
        try Data("\(text)\n\(recipe.description)\n".utf8).write(to: URL(fileURLWithPath: path + ".txt"))
        self.findings[name] = Finding(path: path, text: text, size: size)
        say("over the budget: \(path): \(text)\n    \(recipe.description)")
    }

    /// Prints the worst result of each kind of load, and all results over the budget.
    func report() {
        say("\(self.generator.coder): \(self.count) files")
        for island in self.islands {
            guard let worst = island.best.first else { continue }
            let measurement = worst.measurement
            let figure =
                switch island.goal {
                case .seconds: "\(measurement.seconds.rounded(3)) s of processor time"
                case .secondsPerByte: "\((worst.score * 1e6).rounded(2)) us a byte"
                case .takenPerCounted:
                    "\(measurement.takenBytes >> 20) MiB taken, \(measurement.countedBytes >> 20) MiB counted"
                }
            say("  \(island.kind.rawValue): \(figure), \(worst.byteCount) bytes, \(measurement.outcome.prefix(60))")
            say("      \(worst.recipe.description)")
        }
        for finding in self.findings.values.sorted(by: { $0.path < $1.path }) {
            say("over the budget: \(finding.path): \(finding.text)")
        }
        say(self.isClean ? "\(self.generator.coder): within the budget" : "\(self.generator.coder): over the budget")
    }
}
