// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeCaching
import TintypeTestSupport

/// A catalogue that is cut short, emptied or linked in place, again and again, while two processes use the folder.
struct CutCatalogues {
    let folder: String
    let seed: UInt64

    func run(_ rounds: Int) async throws -> String {
        var generator = SeededGenerator(seed: self.seed)
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        var (found, cuts) = (0, 0)
        for round in 0..<rounds {
            let workers = try (0..<2).map { _ in
                try SpawnedProcess(program, ["worker", self.folder, "\(generator.next() >> 2)"])
            }
            usleep(10_000)
            for _ in 0..<4 {
                usleep(UInt32(generator.next() % 10_000))
                if self.cut(&generator) { cuts += 1 }
            }
            usleep(5_000)
            for worker in workers {
                worker.send(SIGKILL)
                let status = worker.wait()
                guard status & 0x7F == SIGKILL else {
                    throw Failure("round \(round): a worker ended by itself: \(status)")
                }
            }
            found += try await self.check(round)
        }
        return "cut the catalogue \(cuts) times under 2 processes: \(found) entries read whole, none ended"
    }

    private func cut(_ generator: inout SeededGenerator) -> Bool {
        let path = self.folder + "/catalogue"
        var status = stat()
        guard lstat(path, &status) == 0 else { return false }
        let lengths = [0, 8, 1_024, 4_096, Int(status.st_size) / 2, Int(status.st_size) - 32]
        let length = lengths[Int(generator.next() % UInt64(lengths.count))]
        guard length >= 0, truncate(path, length) == 0 else { return false }
        // As an editor or a copy leaves it.
        if generator.next() % 3 == 0 { truncate(path, Int(status.st_size)) }
        return true
    }

    private func check(_ round: Int) async throws -> Int {
        let cache = Bodies.cache(in: self.folder)
        let found = try await Bodies.checkAll(cache)
        _ = await cache.prune()
        let statistics = await cache.statistics()
        await cache.shutdown()
        let root = self.folder + "/entries"
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: root)) ?? []
        let files = names.filter { $0.contains("/") }.count
        guard statistics.damagedEntries == 0, statistics.entryCount == files else {
            throw Failure(
                "round \(round): \(files) files are counted as \(statistics.entryCount), \(statistics.damagedEntries) damaged"
            )
        }
        guard statistics.byteCount + statistics.overheadByteCount <= Bodies.sizeLimit else {
            throw Failure("round \(round): \(statistics.byteCount) bytes are over the limit")
        }
        return found
    }
}
