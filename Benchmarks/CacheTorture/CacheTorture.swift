import FoundationEssentials
import Glibc
import TestSupport

/// Kills processes that use a cache folder, flips bits in it and fills its disk, and looks what is left.
///
///     CacheTorture [ROUNDS [SEED]]     all of it; default 500 rounds
///     CacheTorture worker FOLDER SEED  what is killed
@main
enum CacheTorture {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            if arguments.first == "worker", arguments.count == 3, let seed = UInt64(arguments[2]) {
                return try await Worker(folder: arguments[1], seed: seed).run()
            }
            let rounds = arguments.first.flatMap { Int($0) } ?? 500
            let seed = arguments.dropFirst().first.flatMap { UInt64($0) } ?? 1
            let folder = try TemporaryDirectory()
            print("\(rounds) rounds, seed \(seed)")
            print(try await KillRounds(folder: folder.path(of: "killed"), seed: seed).run(rounds))
            print(
                try await BitFlips(folder: folder.path(of: "flipped"), seed: seed).run(
                    entries: min(1_000, rounds * 10),
                    catalogue: min(200, rounds * 2)
                )
            )
            print(try await BadDisks(folder: folder, seed: seed).run())
            print("passed")
        } catch {
            print("failed: \(error)")
            exit(1)
        }
    }
}

/// What went wrong.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
