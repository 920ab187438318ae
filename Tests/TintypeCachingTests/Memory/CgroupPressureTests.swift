// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(5)))
struct CgroupPressureTests {
    @Test(.enabled(if: LimitedCgroup.isAvailable, "this process may not make memory cgroups"))
    func `a cgroup at its limit makes the cache give memory back`() async throws {
        let group = try LimitedCgroup(byteCount: 16 << 20)
        let sensors = group.sensors
        try #require(!sensors.isEmpty)
        let cache = MemoryCache()
        cache.respond(to: MemoryPressureMonitor(sensors: sensors, pause: 0))
        for index in 0..<64 { cache.insert(try makeImage(), for: CacheKey("key \(index)")) }
        let folder = try ScratchFolder()
        let executor = ThreadExecutor(name: "press")
        defer { executor.shutdown() }
        await Press(executor: executor).run {
            group.press(byteCount: 64 << 20, in: folder.path) { cache.statistics.count < 64 }
        }
        // The kernel's signal has reached the monitor or reaches it now.
        await until { cache.statistics.count < 64 }
        #expect(cache.statistics.evictions > 0)
        #expect(cache.statistics.cost == cache.statistics.count * (try unitCost()))
    }

    /// An actor that may block its own thread.
    private actor Press {
        private let executor: ThreadExecutor

        init(executor: ThreadExecutor) {
            self.executor = executor
        }

        nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

        func run(_ body: @Sendable () -> Void) {
            body()
        }
    }
}
