// SPDX-License-Identifier: Apache-2.0

/// The options on the command line.
struct Options: Sendable {
    /// An invalid command line.
    struct Misuse: Error, CustomStringConvertible {
        let description: String
    }

    static let help = """
        usage: TintypeBenchmarks [--filter REGEX] [--quick] [--list] [--rounds N] [--json FILE]

          --filter REGEX  only benchmarks whose name matches (anywhere in the name)
          --quick         few, short samples: to see that everything runs, not to quote
          --list          the names of all benchmarks, and what they measure
          --rounds N      so many samples of each side
          --json FILE     where the figures go; Benchmarks/results/latest.json otherwise
          --help          this text

        Figures mean something only from a release build:
          make bench BENCH='--filter REGEX'
        """

    var filter: String?
    var isQuick = false
    var isList = false
    var isHelp = false
    var rounds: Int?
    var json: String?
    /// The job to do as a child of another run of the harness, and its arguments.
    var job: [String]?

    var plan: Plan {
        let plan = self.isQuick ? Plan.quick : .thorough
        return self.rounds.map { Plan(rounds: $0, sampleSeconds: plan.sampleSeconds) } ?? plan
    }

    /// Reads the arguments that follow the program's name.
    init(_ arguments: [String]) throws(Misuse) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--quick": self.isQuick = true
            case "--list": self.isList = true
            case "--help", "-h": self.isHelp = true
            case "--filter": self.filter = try Self.value(of: argument, &rest)
            case "--json": self.json = try Self.value(of: argument, &rest)
            case "--rounds": self.rounds = try Self.count(of: argument, &rest)
            case "--job":
                self.job = Array(rest)
                rest = []
            default: throw Misuse(description: "unknown argument \(argument)")
            }
        }
    }

    private static func value(of name: String, _ rest: inout ArraySlice<String>) throws(Misuse) -> String {
        guard let value = rest.popFirst() else { throw Misuse(description: "\(name) needs a value") }
        return value
    }

    private static func count(of name: String, _ rest: inout ArraySlice<String>) throws(Misuse) -> Int {
        guard let count = Int(try self.value(of: name, &rest)), count > 0 else {
            throw Misuse(description: "\(name) needs a number of at least 1")
        }
        return count
    }
}
