// SPDX-License-Identifier: Apache-2.0

import TintypeCaching
import TintypeTestSupport

/// Stores, reads and removes in four tasks until it is killed.
///
/// Ends by itself if a read returns wrong bytes.
struct Worker {
    let folder: String
    let seed: UInt64

    func run() async throws {
        let cache = Bodies.cache(in: self.folder)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in UInt64(0)..<4 {
                group.addTask { try await self.work(cache, SeededGenerator(seed: self.seed &* 4 &+ task)) }
            }
            try await group.waitForAll()
        }
    }

    private func work(_ cache: DiskCache, _ generator: SeededGenerator) async throws {
        var generator = generator
        while true {
            let number = Int(generator.next() % 200)
            let key = Bodies.keys[number]
            switch generator.next() % 100 {
            case 0..<40:
                let body = Bodies.make(number, version: generator.next())
                try await cache.store(body, metadata: EntryMetadata(), for: key)
            case 40..<50:
                cache.enqueueStore(Bodies.make(number, version: generator.next()), metadata: EntryMetadata(), for: key)
            case 50..<55:
                try await cache.remove(key)
            case 55 where generator.next() % 20 == 0:
                try await cache.removeAll()
            default:
                guard let entry = try await cache.entry(for: key) else { continue }
                guard Bodies.isWhole(entry.data, number) else {
                    throw Failure("a wrong body came back for key \(number)")
                }
            }
        }
    }
}
