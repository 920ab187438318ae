// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeTestSupport

/// Kills and stops processes that use a cache folder, puts foreign files into it, flips bits, truncates its catalogue,
/// fills its disk, and checks the remains.
///
///     CacheTorture [ROUNDS [SEED]]     runs all checks; default 500 rounds
///     CacheTorture worker FOLDER SEED  runs a process to kill
///     CacheTorture holder FOLDER       takes the folder's lock, and stops itself
@main
enum CacheTorture {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            if arguments.first == "worker", arguments.count == 3, let seed = UInt64(arguments[2]) {
                return try await Worker(folder: arguments[1], seed: seed).run()
            }
            if arguments.first == "holder", arguments.count == 2 { return try Holder(folder: arguments[1]).run() }
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
            let part = max(2, rounds / 10)
            print(try await Strangers(folder: folder.path(of: "strangers"), seed: seed).run(part))
            print(try await StoppedWorkers(folder: folder.path(of: "stopped"), seed: seed).run(part))
            print(try await CutCatalogues(folder: folder.path(of: "cut"), seed: seed).run(part))
            print(try await BadDisks(folder: folder).run())
            print("passed")
        } catch {
            print("failed: \(error)")
            exit(1)
        }
    }
}

/// The description of a failed check.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
