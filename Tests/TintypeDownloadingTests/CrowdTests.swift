// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

/// Smaller versions of the long checks, which run ten thousand and a hundred thousand transfers.
@Suite(.alone, .timeLimit(.minutes(5)))
struct CrowdTests {
    @Test func `hundreds of transfers that drip all arrive`() async throws {
        let count = 400
        let content = pattern(1_500)
        let origin = try NginxOrigin(files: ["a": content], directives: "limit_rate 1000;")
        var configuration = DownloadActor.Configuration()
        configuration.maximumTransfers = count
        configuration.maximumConnectionsPerHost = count
        let downloader = DownloadActor(configuration: configuration)
        try await withThrowingTaskGroup(of: Data.self) { group in
            for number in 0..<count {
                group.addTask { try await downloader.body(at: origin.url("/a?\(number)")) }
            }
            for try await body in group { #expect(body == content) }
        }
        let counters = await downloader.counters
        #expect(counters.succeeded == count)
        #expect(counters.active == 0)
    }

    @Test func `a storm of cancellations loses no caller and leaves nothing`() async throws {
        let origin = try NginxOrigin(files: ["a": pattern(20_000)])
        let downloader = DownloadActor.patient()
        let (whole, cancelled) = (Recorder<Int>(), Recorder<Int>())
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<64 {
                group.addTask {
                    var generator = SeededGenerator(seed: UInt64(lane))
                    for number in 0..<60 {
                        let task = Task { try await downloader.body(at: origin.url("/a?\((lane + number) % 50)")) }
                        for _ in 0..<Int.random(in: 0..<30, using: &generator) { await Task.yield() }
                        if Bool.random(using: &generator) { task.cancel() }
                        switch await task.result {
                        case .success(let body):
                            #expect(body.count == 20_000)
                            whole.record(number)
                        case .failure(let error):
                            #expect(error is CancellationError)
                            cancelled.record(number)
                        }
                    }
                }
            }
        }
        #expect(whole.elements.count + cancelled.elements.count == 64 * 60)
        let counters = await downloader.counters
        #expect(counters.active == 0)
        #expect(counters.waiting == 0)
        #expect(counters.failed == 0)
        #expect(counters.started == counters.succeeded + counters.cancelled)
    }
}
