// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// Searches for small files that take much time or memory to load.
///
///     SlowFiles hunt CODER SECONDS [SEED]          the search; exit code 1 if a file exceeds the budget
///     SlowFiles write CODER FILE [NAME=VALUE ...]  writes one file of a recipe
///     SlowFiles check FILE...                      the cost of each load of each file
///     SlowFiles measure FILE 0|1 BYTES KIND...     one child's work
@main
enum SlowFiles {
    static func main() async {
        var arguments = CommandLine.arguments.dropFirst()
        do {
            switch arguments.popFirst() {
            case "hunt": try self.hunt(Array(arguments))
            case "write": try self.write(Array(arguments))
            case "check": try self.check(Array(arguments))
            case "measure": try await self.measure(Array(arguments))
            default: throw Failure("SlowFiles takes hunt, write, check or measure")
            }
        } catch {
            say("failed: \(error)")
            exit(2)
        }
    }

    private static func generator(_ name: String?) throws -> any FileGenerator.Type {
        guard let generator = generators.first(where: { $0.coder == name }) else {
            throw Failure("the coders are \(generators.map { $0.coder }.joined(separator: ", "))")
        }
        return generator
    }

    private static func hunt(_ arguments: [String]) throws {
        let generator = try self.generator(arguments.first)
        let seconds = arguments.dropFirst().first.flatMap { Int($0) } ?? 1_200
        let seed = arguments.dropFirst(2).first.flatMap { UInt64($0) } ?? UInt64(time(nil))
        say("\(generator.coder): \(seconds) s, seed \(seed)")
        let work = FileManager.default.temporaryDirectory.path
        var search = Search(generator, folder: "Fuzz/findings", workFolder: work, seed: seed)
        try search.run(seconds: seconds)
        search.report()
        if !search.isClean { exit(1) }
    }

    private static func write(_ arguments: [String]) throws {
        let generator = try self.generator(arguments.first)
        guard arguments.count >= 2 else { throw Failure("write takes a coder, a file, and values") }
        var values: [String: Int] = ["pieceBytes": 16_000]
        for argument in arguments.dropFirst(2) {
            let parts = argument.split(separator: "=")
            guard parts.count == 2, let value = Int(parts[1]) else { throw Failure("\(argument) is no NAME=VALUE") }
            values[String(parts[0])] = value
        }
        let bytes = generator.bytes(Recipe(generator.allGenes, values))
        try Data(bytes).write(to: URL(fileURLWithPath: arguments[1]))
    }

    private static func kinds(of path: String) -> [Kind] {
        generators.first { $0.coder == URL(fileURLWithPath: path).pathExtension }?.kinds ?? Kind.loads
    }

    private static func check(_ paths: [String]) throws {
        var isClean = true
        for path in paths {
            for measurement in try Probe.measure(path: path, Self.kinds(of: path), Load()) {
                let excess = Budget.excess(of: measurement)
                if excess != nil { isClean = false }
                say(
                    "\(path) \(measurement.kind.rawValue): \(measurement.seconds.rounded(3)) s, "
                        + "\(measurement.takenBytes >> 20) MiB taken, \(measurement.countedBytes >> 20) MiB counted, "
                        + "\(measurement.outcome.prefix(80))\(excess == nil ? "" : "  OVER THE BUDGET: \(excess?.what ?? "")")"
                )
            }
        }
        if !isClean { exit(1) }
    }

    private static func measure(_ arguments: [String]) async throws {
        guard arguments.count > 3, let pieceBytes = Int(arguments[2]) else { throw Failure("measure takes more") }
        let kinds = try arguments[3...].map { name in
            guard let kind = Kind(rawValue: name) else { throw Failure("there is no load \(name)") }
            return kind
        }
        let load = Load(allowsTruncated: arguments[1] == "1", pieceBytes: pieceBytes)
        try await Measurer(path: arguments[0], load: load).run(kinds)
    }
}
