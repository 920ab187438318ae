// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeTestSupport

/// One loader from its beginning to its end, under the calls of many tasks.
struct Round {
    static let taskCount = 200
    /// The calls of a minute, at least.
    private static let callCount = 10_000

    private let images: Images
    private let origin: MemoryOrigin
    private let ledger: Ledger
    private let seed: UInt64

    init(_ images: Images, seed: UInt64) {
        self.images = images
        self.seed = seed
        self.origin = MemoryOrigin(images, seed: seed)
        self.ledger = Ledger(self.origin.heldBytes)
    }

    /// Runs for `seconds`, and then shuts the loader down during the remaining calls.
    func run(seconds: Double) async throws -> Ledger {
        let folder = try TemporaryDirectory()
        let loader = self.makeLoader(in: folder)
        self.ledger.watch(loader, "loader")
        let start = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<Self.taskCount {
                let caller = Caller(
                    loader: loader,
                    images: self.images,
                    ledger: self.ledger,
                    seed: self.seed &* 1_000 &+ UInt64(index)
                )
                group.addTask { await caller.run() }
            }
            try? await Task.sleep(for: .seconds(seconds))
            let least = seconds < 60 ? 0 : Self.callCount
            while self.ledger.callCount < least { try? await Task.sleep(for: .milliseconds(100)) }
            self.ledger.end()
            await loader.shutdown(finishesLoads: self.seed.isMultiple(of: 2))
        }
        await self.check(loader, after: .now - start)
        return self.ledger
    }

    /// Small caches, so that everything is evicted all the time.
    private func makeLoader(in folder: TemporaryDirectory) -> LoaderActor {
        var configuration = LoaderActor.Configuration()
        configuration.disk = DiskCache.Configuration(directory: folder.url(of: "cache"))
        configuration.disk?.sizeLimit = 512 << 10
        configuration.memory.costLimit = 512 << 10
        configuration.framePoolByteLimit = 128 << 10
        configuration.decodingMemory = 256 << 10
        configuration.laneCount = 4
        configuration.failureLifetimes = FailureLifetimes(missing: .seconds(1), undecodable: .seconds(1))
        configuration.fetcher = self.origin
        configuration.observers = [self.ledger]
        return LoaderActor(configuration: configuration)
    }

    private func check(_ loader: LoaderActor, after time: Duration) async {
        let statistics = await loader.statistics()
        self.ledger.check(statistics)
        let (loads, waiters) = (await loader.loadCount, await loader.waiterCount)
        if loads != 0 || waiters != 0 {
            self.ledger.add(fault: "\(loads) loads and \(waiters) waiters after the shutdown")
        }
        let downloads = statistics.downloads
        if downloads.active != 0 || downloads.waiting != 0 || downloads.bodyBytes != 0 {
            self.ledger.add(fault: "downloads after the shutdown: \(downloads)")
        }
        LoaderTorture.say("  \(self.ledger.callCount) calls in \(time)")
        for product in LoadActivity.Product.allCases {
            let loads = statistics.loads(of: product)
            LoaderTorture.say(
                "  \(product): \(loads.started) loads, \(loads.joined) joined, "
                    + "\(loads.finished.values.reduce(0, +)) finished, \(loads.failed.values.reduce(0, +)) failed, "
                    + "\(loads.cancelled) cancelled"
            )
        }
        for (name, count) in self.ledger.outcomes.sorted(by: { $0.key < $1.key }) {
            LoaderTorture.say("    \(name): \(count)")
        }
    }
}

extension LoaderStatistics {
    func loads(of product: LoadActivity.Product) -> Loads {
        switch product {
        case .image: self.images
        case .bytes: self.bytes
        case .encoded: self.encoded
        }
    }
}
