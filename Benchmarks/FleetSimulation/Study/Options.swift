// SPDX-License-Identifier: Apache-2.0

/// The arguments of the program.
struct Options: Sendable {
    /// An argument that cannot be read.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    static let usage = """
        Simulates fleets of image servers and prints the requests that their caches cannot answer.

            FleetSimulation [OPTION VALUE]...

        Fleets, each of which runs with the same traffic:
          --nodes 1,3,10          numbers of nodes
          --sharing NAME,...      no-shared-tier, shared-tier, single-flight; default: all
          --balancing NAME,...    round-robin, result-hash, source-hash; default: all

        Traffic, from one of three:
          --requests FILE         lines of a real run: SECONDS NODE SOURCE SIZE; NODE counts from 0, or is - for the balancer
          --trace FILE            keys in their order, at the rate of --rate; .xz is unpacked
          without either          sources by Zipf's law at random times, in four sizes
          --fit FILE              prints the exponent of Zipf's law for a trace, and runs nothing
          --exponent 0.83         exponent of the law
          --sources 25000         number of sources
          --rate 20               requests a second of each node
          --seconds 1200          length of the run
          --warm-up 600           seconds before the counted ones

        Nodes:
          --local-results 256     MiB of results that each node caches
          --local-sources 2048    MiB of sources that each node caches
          --local-lifetime 60     seconds for which a node sends a result without the shared tier; default: while it is fresh
          --render 20             milliseconds to make a result

        Shared tier and origin:
          --shared 32768          MiB of the shared tier
          --shared-eviction lfu   lfu or lru
          --round-trip 1          milliseconds of a command to it
          --lease 15              seconds until the lock of a lost node is free
          --longest-wait 10       seconds that a node waits for another
          --origin 100            median milliseconds of the origin for a source
          --origin-spread 0.5     deviation of the logarithm of that time
          --lifetime 600          seconds for which a source is fresh
          --result-bytes 35000    mean bytes of a result
          --source-bytes 400000   mean bytes of a source

        Losses of nodes, which come back with empty caches:
          --lose 1                number of nodes that are lost together
          --lose-at 900           the time of the loss, in seconds
          --lose-for 60           seconds until they come back

        Output:
          --csv FILE              writes the table as comma-separated values
          --timeline FILE         writes the requests to the origin in each second
          --seed 1                another seed gives other random numbers
        """

    var fleet = FleetSettings()
    var nodeCounts = [1, 3, 10]
    var sharings = FleetSettings.Sharing.allCases
    var balancings = Balancer.Rule.allCases
    var requestFile: String?
    var traceFile: String?
    var fitFile: String?
    var exponent = 0.83
    var sourceCount = 25_000
    var rate = 20.0
    var seconds = 1_200.0
    var warmUp = 600.0
    var resultBytes = 35_000.0
    var sourceBytes = 400_000.0
    var lostCount = 0
    var lossTime = 900.0
    var lossDuration = 60.0
    var csvFile: String?
    var timelineFile: String?

    init(_ arguments: some Sequence<String>) throws {
        var iterator = arguments.makeIterator()
        while let name = iterator.next() {
            guard let value = iterator.next() else { throw Failure(description: "\(name) needs a value") }
            do {
                try self.set(name, value)
            } catch let failure as Failure {
                throw Failure(description: "\(name) \(value): \(failure.description)")
            }
        }
        // The requests of a real run name their nodes.
        if self.requestFile != nil { self.balancings = [self.balancings[0]] }
        guard self.warmUp < self.seconds else { throw Failure(description: "--warm-up must be less than --seconds") }
        guard self.lostCount <= self.nodeCounts.min() ?? 0 else {
            throw Failure(description: "--lose must not be more than the nodes")
        }
    }

    private mutating func set(_ name: String, _ value: String) throws {
        switch name {
        case "--nodes": self.nodeCounts = try value.split(separator: ",").map { try Self.count($0) }
        case "--sharing": self.sharings = try Self.cases(value)
        case "--balancing": self.balancings = try Self.cases(value)
        case "--requests": self.requestFile = value
        case "--trace": self.traceFile = value
        case "--fit": self.fitFile = value
        case "--exponent": self.exponent = try Self.number(value)
        case "--sources": self.sourceCount = try Self.count(value)
        case "--rate": self.rate = try Self.number(value, isPositive: true)
        case "--seconds": self.seconds = try Self.number(value, isPositive: true)
        case "--warm-up": self.warmUp = try Self.number(value)
        case "--result-bytes": self.resultBytes = try Self.number(value, isPositive: true)
        case "--source-bytes": self.sourceBytes = try Self.number(value, isPositive: true)
        case "--lose": self.lostCount = try Self.count(value)
        case "--lose-at": self.lossTime = try Self.number(value)
        case "--lose-for": self.lossDuration = try Self.number(value)
        case "--csv": self.csvFile = value
        case "--timeline": self.timelineFile = value
        default: try self.setFleet(name, value)
        }
    }

    private mutating func setFleet(_ name: String, _ value: String) throws {
        switch name {
        case "--local-results": self.fleet.localResultBytes = try Self.mebibytes(value)
        case "--local-sources": self.fleet.localSourceBytes = try Self.mebibytes(value)
        case "--local-lifetime": self.fleet.localLifetime = try Self.number(value)
        case "--render": self.fleet.renderTime = try Self.number(value) / 1_000
        case "--shared": self.fleet.sharedBytes = try Self.mebibytes(value)
        case "--shared-eviction":
            guard let eviction = FleetSettings.Eviction(rawValue: value) else {
                throw Failure(description: "unknown name")
            }
            self.fleet.sharedEviction = eviction
        case "--round-trip": self.fleet.sharedRoundTrip = try Self.number(value) / 1_000
        case "--lease": self.fleet.lease = try Self.number(value)
        case "--longest-wait": self.fleet.longestWait = try Self.number(value)
        case "--origin": self.fleet.origin.median = try Self.number(value) / 1_000
        case "--origin-spread": self.fleet.origin.spread = try Self.number(value)
        case "--lifetime": self.fleet.lifetime = try Self.number(value)
        case "--seed": self.fleet.seed = UInt64(try Self.count(value))
        default: throw Failure(description: "unknown option")
        }
    }

    private static func cases<Case: RawRepresentable<String>>(_ text: String) throws -> [Case] {
        try text.split(separator: ",").map {
            guard let value = Case(rawValue: String($0)) else { throw Failure(description: "unknown name \($0)") }
            return value
        }
    }

    private static func count(_ text: some StringProtocol) throws -> Int {
        guard let value = Int(text), value > 0 else { throw Failure(description: "not a number over 0") }
        return value
    }

    private static func number(_ text: String, isPositive: Bool = false) throws -> Double {
        guard let value = Double(text), isPositive ? value > 0 : value >= 0 else {
            throw Failure(description: isPositive ? "not a number over 0" : "not a number of 0 or more")
        }
        return value
    }

    private static func mebibytes(_ text: String) throws -> Int {
        Int(min(try Self.number(text), 1e12) * 1_048_576)
    }
}
