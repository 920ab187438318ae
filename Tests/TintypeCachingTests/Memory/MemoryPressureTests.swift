// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import FoundationEssentials
import Glibc
import Testing
import TintypeConcurrency
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(5)))
struct MemoryPressureTests {
    /// A sensor that reports the pressure that a test sets.
    private final class TestSensor: PressureSensor {
        private let pressures = Locked<[MemoryPressure?]>([])
        private let descriptor = Descriptor(cshims_eventfd())

        var signal: PressureSignal? {
            self.descriptor.map { PressureSignal(descriptor: $0.number, events: Int16(POLLIN)) }
        }

        func give(_ pressure: MemoryPressure?) {
            self.pressures.withLock { $0.append(pressure) }
            self.descriptor?.signal()
        }

        func read() -> MemoryPressure? {
            self.descriptor?.drain()
            return self.pressures.withLock { pressures in
                defer { pressures = [] }
                return pressures.compactMap { $0 }.max()
            }
        }
    }

    private let keys = (0..<10).map { CacheKey("key \($0)") }

    @Test func `some pressure halves the cache and full pressure empties it`() async throws {
        let sensor = TestSensor()
        let monitor = MemoryPressureMonitor(sensors: [sensor], pause: 0)
        let cache = MemoryCache()
        cache.respond(to: monitor)
        for key in self.keys { cache.insert(try makeImage(), for: key) }
        sensor.give(.some)
        // The cache finds evicted images as long as the evicting thread still holds them.
        await until { self.keys.indices.filter { cache.contains(self.keys[$0]) } == [5, 6, 7, 8, 9] }
        #expect(cache.statistics.count == 5)
        sensor.give(.full)
        await until { cache.statistics.count < 5 }
        #expect(cache.statistics.count == 0)
        #expect(cache.statistics.cost == 0)
        #expect(cache.statistics.evictions == 10)
    }

    @Test func `what is alive is found after full pressure`() async throws {
        let sensor = TestSensor()
        let cache = MemoryCache()
        cache.respond(to: MemoryPressureMonitor(sensors: [sensor], pause: 0))
        let image = try makeImage()
        cache.insert(image, for: self.keys[0])
        cache.insert(try makeImage(), for: self.keys[1])
        sensor.give(.full)
        // An evicted image is alive for a moment.
        await until { cache.statistics.count == 0 && !cache.contains(self.keys[1]) }
        #expect(cache.image(for: self.keys[0])?.pixels === image.pixels)
        #expect(cache.image(for: self.keys[1]) == nil)
    }

    @Test func `every cache of a monitor is told`() async throws {
        let sensor = TestSensor()
        let monitor = MemoryPressureMonitor(sensors: [TestSensor(), sensor], pause: 0)
        let caches = [MemoryCache(), MemoryCache()]
        for cache in caches {
            cache.respond(to: monitor)
            cache.insert(try makeImage(), for: self.keys[0])
        }
        sensor.give(nil)
        sensor.give(.full)
        await until { caches.allSatisfy { $0.statistics.count == 0 } }
    }

    @Test func `the same pressure is told of once in a pause and a higher one at once`() async throws {
        let sensor = TestSensor()
        let cache = MemoryCache()
        cache.respond(to: MemoryPressureMonitor(sensors: [sensor], pause: 1_000_000))
        for key in self.keys { cache.insert(try makeImage(), for: key) }
        for _ in 0..<3 {
            sensor.give(.some)
            await until { cache.statistics.count <= 5 }
        }
        #expect(cache.statistics.count == 5)
        sensor.give(.full)
        await until { cache.statistics.count == 0 }
    }

    @Test func `the monitor ends with its last cache`() async throws {
        weak var monitor: MemoryPressureMonitor?
        do {
            let shared = MemoryPressureMonitor.shared()
            #expect(MemoryPressureMonitor.shared() === shared)
            monitor = shared
        }
        let sensor = TestSensor()
        weak var own: MemoryPressureMonitor?
        do {
            let cache = MemoryCache()
            do {
                let made = MemoryPressureMonitor(sensors: [sensor])
                own = made
                cache.respond(to: made)
            }
            #expect(own != nil)
            withExtendedLifetime(cache) {}
        }
        #expect(own == nil)
        _ = monitor
    }

    @Test(
        arguments: [
            ("some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull avg10=0.00 total=45\n", 123, 45),
            ("full avg10=1.00 avg60=0.00 avg300=0.00 total=7\n", nil, 7),
            ("some avg10=1.00 total=x\n", nil, nil),
            ("", nil, nil),
        ] as [(String, Int?, Int?)]
    )
    func `stalled time is read from its line`(text: String, some: Int?, full: Int?) {
        #expect(StallSensor.stalled(in: text, .some) == some)
        #expect(StallSensor.stalled(in: text, .full) == full)
    }

    @Test func `without triggers stalled time is polled`() throws {
        let folder = try ScratchFolder()
        let path = folder.path + "/memory"
        try Data("some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\n".utf8).write(to: URL(filePath: path))
        let sensor = try #require(StallSensor(path: path, level: .some, usesTrigger: false))
        #expect(sensor.signal == nil)
        #expect(sensor.read() == nil)
        // A stall of an hour since the last reading is a large share of any time.
        let file = try #require(Descriptor(path: path, flags: O_WRONLY | O_TRUNC))
        #expect(file.write("some avg10=90.00 avg60=0.00 avg300=0.00 total=3600001000\n"))
        #expect(sensor.read() == .some)
        #expect(sensor.read() == nil)
        #expect(StallSensor(path: folder.path + "/none", level: .some) == nil)
        #expect(StallSensor(path: path, level: .full, usesTrigger: false) == nil)
    }

    @Test func `events of a cgroup that mean its limit are full pressure`() throws {
        let folder = try ScratchFolder()
        let path = folder.path + "/memory.events"
        try Data("low 5\nhigh 0\nmax 1\noom 0\noom_kill 0\n".utf8).write(to: URL(filePath: path))
        let sensor = try #require(CgroupEventSensor(folder: folder.path))
        #expect(sensor.read() == nil)
        let file = try #require(Descriptor(path: path, flags: O_WRONLY | O_TRUNC))
        #expect(file.write("low 9\nhigh 0\nmax 2\noom 0\noom_kill 0\n"))
        #expect(sensor.read() == .full)
        #expect(sensor.read() == nil)
    }

    @Test(arguments: [(900, nil), (900_000, .some), (990_000, .full)] as [(Int, MemoryPressure?)])
    func `a cgroup that cannot be watched is judged by what it holds`(used: Int, expected: MemoryPressure?) throws {
        let folder = try ScratchFolder()
        try Data("1000000\n".utf8).write(to: URL(filePath: folder.path + "/memory.limit_in_bytes"))
        try Data("cache 5\ntotal_rss \(used)\n".utf8).write(to: URL(filePath: folder.path + "/memory.stat"))
        #expect(try #require(CgroupUsageSensor(folder: folder.path)).read() == expected)
    }

    @Test func `the groups of the process are found`() throws {
        let folder = try ScratchFolder()
        for name in ["a/b/memory.events", "memory/memory.pressure_level"] {
            let url = URL(filePath: folder.path + "/" + name)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data().write(to: url)
        }
        let membership = folder.path + "/cgroup"
        try Data("4:cpu,memory:/host/only\n0::/a/b\n".utf8).write(to: URL(filePath: membership))
        let groups = SystemPressure.groups(membershipPath: membership, mountPath: folder.path)
        #expect(groups.first == folder.path + "/memory")
        #expect(groups.second == folder.path + "/a/b")
        let none = SystemPressure.groups(membershipPath: "/nonexistent", mountPath: folder.path)
        #expect(none.first == nil && none.second == nil)
    }
}
