// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeTestSupport

/// Things of others among the files of a cache, and all that a cache does to a folder.
struct Strangers {
    let folder: String
    let seed: UInt64

    func run(_ rounds: Int) async throws -> String {
        var generator = SeededGenerator(seed: self.seed)
        var actions = 0
        for round in 0..<rounds {
            let cache = Bodies.cache(in: self.folder)
            for number in 0..<40 {
                let body = Bodies.make(number, version: generator.next())
                try await cache.store(body, metadata: EntryMetadata(), for: Bodies.keys[number])
            }
            let strangers = try self.put(&generator)
            for _ in 0..<4 {
                try await self.act(on: cache, &generator)
                actions += 1
            }
            _ = try await Bodies.checkAll(cache)
            await cache.shutdown()
            let second = Bodies.cache(in: self.folder)
            _ = await second.prune()
            await second.shutdown()
            for (path, bytes) in strangers {
                guard let found = try? Data(contentsOf: URL(filePath: path)), found == bytes else {
                    throw Failure("round \(round): \(path) is not what it was")
                }
            }
        }
        return "\(actions) clearings, cleanings and evictions around files of others: each is where it was"
    }

    /// Puts files, some in folders, some under names as the cache's own have them.
    private func put(_ generator: inout SeededGenerator) throws -> [String: Data] {
        let root = self.folder
        // Files of earlier rounds lie there as well.
        let shards = try FileManager.default.contentsOfDirectory(atPath: root + "/entries").filter { $0.count == 2 }
        let digits = (0..<4).map { _ in String(generator.next() | 1 << 63, radix: 16) }.joined()
        let shard = "entries/" + (shards.randomElement(using: &generator) ?? "ab")
        let paths = [
            "\(shard)/notes \(digits)", "\(shard)/\(digits.prefix(22))/inside", "entries/\(digits)",
            "entries/x/\(digits)",
            "temporary/\(digits)", "temporary/1-\(digits.prefix(16))-2/inside", "discarded/\(digits)",
            "discarded/\(digits.prefix(16))/entries/\(digits.prefix(2))/letter \(digits)/inside",
            "\(digits.prefix(2))/\(digits)", "tmp/\(digits.prefix(8))-1",
        ]
        var put: [String: Data] = [:]
        for path in paths {
            let url = URL(filePath: root + "/" + path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            let bytes = Data("of \(path)".utf8)
            try bytes.write(to: url)
            // A file in a discarded folder is restored to its original place.
            let home = path.split(separator: "/").dropFirst(2).joined(separator: "/")
            let isBroughtBack = path.hasPrefix("discarded/") && path.hasSuffix("/inside")
            put[root + "/" + (isBroughtBack ? home : path)] = bytes
        }
        return put
    }

    private func act(on cache: DiskCache, _ generator: inout SeededGenerator) async throws {
        switch generator.next() % 6 {
        case 0: try await cache.removeAll(waitingForDeletion: true)
        case 1: try await cache.removeAll()
        case 2: _ = await cache.prune()
        case 3: _ = await cache.verify()
        case 4: _ = await cache.trim(to: Int(generator.next() % 1_000_000))
        default:
            for number in 100..<160 {
                let body = Bodies.make(number, version: generator.next())
                try await cache.store(body, metadata: EntryMetadata(), for: Bodies.keys[number])
            }
        }
    }
}
