// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeCaching
import TintypeTestSupport

/// Bits that turn over, in entries and in the catalogue.
struct BitFlips {
    let folder: String
    let seed: UInt64

    func run(entries count: Int, catalogue flips: Int) async throws -> String {
        var generator = SeededGenerator(seed: self.seed)
        try await self.flipEntries(count, &generator)
        let found = try await self.flipCatalogue(flips, &generator)
        return
            "flipped a bit in \(count) entries, each a miss, and \(flips) in the catalogue: \(found) entries read whole, none wrong"
    }

    private func flipEntries(_ count: Int, _ generator: inout SeededGenerator) async throws {
        let cache = DiskCache(DiskCache.Configuration(directory: URL(filePath: self.folder)))
        let keys = (0..<count).map { CacheKey("flipped \($0)") }
        for (number, key) in keys.enumerated() {
            let body = Bodies.make(number, version: 1).prefix(2_000)
            try await cache.store(Data(body), metadata: EntryMetadata(formatName: "jpeg"), for: key)
        }
        for path in try self.entryFiles() {
            try self.flip(path, at: Int(generator.next() >> 1), &generator)
        }
        for key in keys where try await cache.entry(for: key) != nil { throw Failure("a flipped bit came back") }
        let statistics = await cache.statistics()
        guard statistics.damagedEntries == count, statistics.entryCount == 0, try self.entryFiles().isEmpty else {
            throw Failure("of \(count) damaged entries \(statistics.damagedEntries) were found and removed")
        }
        await cache.shutdown()
    }

    private func flipCatalogue(_ count: Int, _ generator: inout SeededGenerator) async throws -> Int {
        var (found, place) = (0, 0)
        for round in 0..<count {
            let first = Bodies.cache(in: self.folder)
            do {
                for number in 0..<50 {
                    let body = Bodies.make(number, version: UInt64(round))
                    try await first.store(body, metadata: EntryMetadata(), for: Bodies.keys[number])
                }
            } catch {
                throw Failure("round \(round), after a bit at \(place): \(error)")
            }
            await first.shutdown()
            // Most reads are of the header and a few slots.
            place = Int(generator.next() >> 1) % (round % 2 == 0 ? 1_024 : 4_096)
            try self.flip(self.folder + "/catalogue", at: place, &generator)
            let second = Bodies.cache(in: self.folder)
            found += try await Bodies.checkAll(second, keys: 0..<50)
            _ = await second.prune()
            let statistics = await second.statistics()
            await second.shutdown()
            let files = try self.entryFiles()
            guard statistics.entryCount == files.count else {
                throw Failure(
                    "round \(round): \(files.count) files are counted as \(statistics.entryCount), after a bit at \(place)"
                )
            }
        }
        return found
    }

    /// Turns one bit of a file over, in place.
    private func flip(_ path: String, at place: Int, _ generator: inout SeededGenerator) throws {
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure("\(path) cannot be opened") }
        defer { close(descriptor) }
        var status = stat()
        fstat(descriptor, &status)
        let offset = place % max(1, Int(status.st_size))
        var byte: UInt8 = 0
        guard pread(descriptor, &byte, 1, offset) == 1 else { throw Failure("\(path) cannot be read") }
        byte ^= 1 << UInt8(generator.next() % 8)
        guard pwrite(descriptor, &byte, 1, offset) == 1 else { throw Failure("\(path) cannot be written") }
    }

    private func entryFiles() throws -> [String] {
        let root = self.folder + "/entries"
        return try FileManager.default.subpathsOfDirectory(atPath: root).filter { $0.contains("/") }.map {
            root + "/" + $0
        }
    }
}
