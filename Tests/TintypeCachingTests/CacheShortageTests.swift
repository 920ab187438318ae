// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

/// Caches for which the system refuses to start threads.
@Suite(.waiting, .timeLimit(.minutes(5))) struct CacheShortageTests {
    @Test func `a disk tier without threads fails with a typed error, and works once there are some`() async throws {
        let folder = try TemporaryDirectory(prefix: "tintype-cache")
        let refusals = ThreadRefusals(.max)
        let cache = DiskCache(.init(directory: folder.url(of: "cache")), startThread: refusals.start)
        let key = CacheKey("key")
        let data = Data([1, 2, 3])
        let error = await #expect(throws: CacheError.self) {
            try await cache.store(data, metadata: EntryMetadata(), for: key)
        }
        #expect(error?.code == .tooManyThreads)
        #expect(await cache.contains(key) == false)
        refusals.refuse(0)
        try await cache.store(data, metadata: EntryMetadata(), for: key)
        #expect(try await cache.entry(for: key)?.data == data)
        await cache.shutdown()
    }

    @Test func `stores in the background need no thread of their own`() async throws {
        let folder = try TemporaryDirectory(prefix: "tintype-cache")
        let cache = DiskCache(.init(directory: folder.url(of: "cache")), startThread: ThreadRefusals(.max).start)
        let keys = (0..<20).map { CacheKey("key \($0)") }
        for key in keys { cache.enqueueStore(Data([1]), metadata: EntryMetadata(), for: key) }
        await cache.waitForPendingStores()
        for key in keys { #expect(await cache.contains(key)) }
        await cache.shutdown()
    }

    @Test func `a pressure monitor without a thread begins to watch with a later subscription`() async {
        let refusals = ThreadRefusals(2)
        let sensor = StillSensor()
        let monitor = MemoryPressureMonitor(sensors: [sensor], pause: 0, startThread: refusals.start)
        let first = monitor.subscribe { _ in }
        #expect(sensor.readCount == 0)
        let second = monitor.subscribe { _ in }
        await until { sensor.readCount > 0 }
        withExtendedLifetime((first, second)) {}
    }
}

/// A sensor that must be polled and never reports pressure.
private final class StillSensor: PressureSensor {
    private let count = Locked(0)
    var readCount: Int { self.count.withLock { $0 } }
    let signal: PressureSignal? = nil

    func read() -> MemoryPressure? {
        self.count.withLock { $0 += 1 }
        return nil
    }
}
