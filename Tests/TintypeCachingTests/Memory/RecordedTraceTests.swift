// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

/// Replays recorded requests and compares the hit ratios with independent figures.
@Suite(.computing, .enabled(if: RecordedTrace.folder != nil, "there is no corpus with traces"))
struct RecordedTraceTests {
    /// The short traces, which take a second.
    static let names = ["lirs_multi1", "lirs_cpp", "lirs_ps"]

    @Test(arguments: names)
    func `lru has the expected hit ratios`(name: String) throws {
        let trace = try RecordedTrace(name)
        for expected in try RecordedTrace.baseline(name) {
            var cache = PolicySimulation<LRUPolicy>(capacity: expected.capacity)
            let hits = trace.keys.count { cache.request($0) }
            #expect(abs(Double(hits) / Double(trace.keys.count) - expected.ratio) < 0.000_051)
        }
    }

    /// Covers 5, 10 and 20 % of the keys, with the figures of libCacheSim (`S3FIFO`).
    @Test(arguments: [
        ("lirs_multi1", [0.4567, 0.4980, 0.5571]), ("lirs_cpp", [0.5867, 0.8036, 0.8492]),
        ("lirs_ps", [0.2888, 0.5319, 0.5868]),
    ])
    func `S3-FIFO has the expected hit ratios`(name: String, expected: [Double]) throws {
        let trace = try RecordedTrace(name)
        for (baseline, expected) in zip(try RecordedTrace.baseline(name).dropFirst(), expected) {
            var cache = PolicySimulation<S3FIFOPolicy>(capacity: baseline.capacity)
            let hits = trace.keys.count { cache.request($0) }
            #expect(abs(Double(hits) / Double(trace.keys.count) - expected) < 0.001)
        }
    }

    @Test(arguments: names)
    func `the policy of the tier is never below LRU`(name: String) throws {
        let trace = try RecordedTrace(name)
        for expected in try RecordedTrace.baseline(name) {
            var cache = PolicyCache(capacity: expected.capacity)
            let hits = trace.keys.count { cache.request($0) }
            #expect(Double(hits) / Double(trace.keys.count) >= expected.ratio)
        }
    }

    @Test func `the tier answers what its policy answers`() throws {
        let trace = try RecordedTrace("lirs_cpp")
        let expected = try #require(try RecordedTrace.baseline("lirs_cpp").dropFirst().first)
        let unit = try unitCost()
        let byCount = MemoryCache(.init(countLimit: expected.capacity, keepsWeakly: false))
        let byCost = MemoryCache(.init(costLimit: expected.capacity * unit, keepsWeakly: false))
        let image = try makeImage()
        let keys = (0...(trace.keys.max() ?? 0)).map { CacheKey("\($0)") }
        var policy = PolicyCache(capacity: expected.capacity)
        let hits = trace.keys.count { policy.request($0) }
        for cache in [byCount, byCost] {
            for key in trace.keys where cache.image(for: keys[key]) == nil { cache.insert(image, for: keys[key]) }
            // Hashes differ between processes, and with them the collisions of the sketch and the leading policy. So
            // some 1 % of the hits in such a short trace may differ.
            let difference = abs(cache.statistics.hits - hits)
            #expect(difference < trace.keys.count / 30)
            #expect(cache.statistics.count == expected.capacity)
        }
    }
}

/// A recorded sequence of requests, whose keys are small integers.
struct RecordedTrace {
    static let folder: URL? = {
        guard let folder = Fixtures.corpus?.appending(path: "traces"),
            FileManager.default.fileExists(atPath: folder.path + "/index.tsv"),
            access("/usr/bin/xz", X_OK) == 0
        else { return nil }
        return folder
    }()

    let keys: [Int]

    init(_ name: String) throws {
        let folder = try #require(Self.folder)
        let pipe = try #require(popen("/usr/bin/xz -dc '\(folder.path)/\(name).txt.xz'", "r"))
        defer { pclose(pipe) }
        var keys: [Int] = []
        var line = [CChar](repeating: 0, count: 64)
        while fgets(&line, CInt(line.count), pipe) != nil { keys.append(Int(atol(line))) }
        self.keys = keys
    }

    /// Returns LRU's hit ratio for each capacity.
    static func baseline(_ name: String) throws -> [(capacity: Int, ratio: Double)] {
        let file = try #require(self.folder).appending(path: "baseline.tsv")
        return String(decoding: try Data(contentsOf: file), as: UTF8.self).split(separator: "\n").compactMap { line in
            let fields = line.split(separator: "\t")
            guard fields[0] == name, let capacity = Int(fields[2]), let ratio = Double(fields[3]) else { return nil }
            return (capacity, ratio)
        }
    }
}
