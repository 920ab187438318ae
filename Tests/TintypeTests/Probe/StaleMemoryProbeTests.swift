import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import TintypeConcurrency

@testable import Tintype

/// Stale bytes that are held while the origin is asked.
@Suite(.waiting, .timeLimit(.minutes(2))) struct StaleMemoryProbeTests {
    @Test(arguments: [false, true])
    func `pictures that have changed come without pauses where memory is short`(isStale: Bool) async throws {
        let fixture = try LoaderFixture()
        let origin = try FaultyOrigin()
        let count = 12
        let fields = [("Cache-Control", "max-age=0"), ("ETag", "\"a\"")]
        let old = try makePNG(width: 8) + [UInt8](repeating: 0, count: 1_200_000)
        let new = try makePNG(width: 9) + [UInt8](repeating: 0, count: 1_200_000)
        func makeLoader() -> LoaderActor {
            fixture.makeLoader { configuration in
                configuration.cachePolicy = .honorFreshness
                configuration.downloads.bodyMemory = 3_000_000
                configuration.downloads.maximumConnectionsPerHost = count
                configuration.disk?.pendingByteLimit = 1 << 30
            }
        }
        func load(_ loader: LoaderActor, width: Int) async throws {
            try await withThrowingTaskGroup(of: Int.self) { group in
                for index in 0..<count {
                    let request = ImageRequest(url: origin.url("/\(index)"), options: [.waitForStore])
                    group.addTask { try await loader.image(for: request).width }
                }
                for try await found in group { #expect(found == width) }
            }
        }
        for index in 0..<count { origin.script("/\(index)", .body(old, headers: fields)) }
        if isStale { try await load(makeLoader(), width: 8) }
        for index in 0..<count { origin.script("/\(index)", .body(new, headers: fields)) }
        let loader = makeLoader()
        let start = ContinuousClock.now
        try await load(loader, width: 9)
        print("PROBE stale \(isStale): \(ContinuousClock.now - start), waits \(await loader.downloads.counters.memoryWaits)")
    }
}
