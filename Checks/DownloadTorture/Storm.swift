// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TintypeDownloading
import TintypeTestSupport

/// A hundred thousand starts and cancels at random moments, from 64 tasks.
struct Storm {
    private static let count = 100_000
    private static let lanes = 64
    private static let bodySize = 20_000
    private static let allowedGrowth = 2 << 20
    private static let allowedDescriptors = 8

    private final class Tally: Sendable {
        let next = Atomic<Int>(0)
        let whole = Atomic<Int>(0)
        let cancelled = Atomic<Int>(0)
        let wrong = Atomic<Int>(0)

        var sums: [Int] {
            [
                self.whole.load(ordering: .relaxed), self.cancelled.load(ordering: .relaxed),
                self.wrong.load(ordering: .relaxed),
            ]
        }
    }

    func run() async throws -> Bool {
        let origin = try NginxOrigin(files: ["a": Data(repeating: 7, count: Self.bodySize)], connections: 8_000)
        let downloads = DownloadActor()
        let address = origin.url("/a").absoluteString
        let tally = Tally()
        // A tenth of it first, so that pools and caches are as large as they get.
        var resources: [Resources] = []
        let start = ContinuousClock.now
        for end in [Self.count / 10, Self.count / 2, Self.count] {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<Self.lanes {
                    group.addTask {
                        var generator = SystemRandomNumberGenerator()
                        while true {
                            let number = tally.next.wrappingAdd(1, ordering: .relaxed).oldValue
                            guard number < end else { break }
                            let url = URL(string: "\(address)?\(number % 500)") ?? URL(fileURLWithPath: "/")
                            let task = Task { try await downloads.response(for: DownloadRequest(url: url)).body.count }
                            for _ in 0..<Int.random(in: 0..<40, using: &generator) { await Task.yield() }
                            if Bool.random(using: &generator) { task.cancel() }
                            switch await task.result {
                            case .success(Self.bodySize): tally.whole.wrappingAdd(1, ordering: .relaxed)
                            case .failure(is CancellationError): tally.cancelled.wrappingAdd(1, ordering: .relaxed)
                            default: tally.wrong.wrappingAdd(1, ordering: .relaxed)
                            }
                        }
                    }
                }
            }
            tally.next.store(end, ordering: .relaxed)
            resources.append(try Resources.now())
        }
        let seconds = (.now - start) / .seconds(1)
        let counters = await downloads.counters
        let sums = tally.sums
        var findings = Findings()
        findings.line(
            "storm: \(Self.count) starts in \(seconds) s: \(sums[0]) whole, \(sums[1]) cancelled, \(sums[2]) wrong",
            sums[2] == 0 && sums[0] + sums[1] == Self.count
        )
        findings.line(
            "  transfers: \(counters.started) started, \(counters.shared) shared, \(counters.succeeded) whole,",
            counters.started == counters.succeeded + counters.cancelled
        )
        findings.line(
            "    \(counters.cancelled) cancelled, \(counters.failed) failed, "
                + "\(counters.active) active and \(counters.waiting) waiting after",
            counters.failed == 0 && counters.active == 0 && counters.waiting == 0
        )
        for (name, value) in zip(["a tenth", "half", "all"], resources) {
            findings.line(
                "  after \(name): \(value.residentBytes) resident, \(value.heapBytes) heap, \(value.descriptors) open"
            )
        }
        let growth = resources[2].heapBytes - resources[0].heapBytes
        findings.line("  growth of the heap: \(growth), bar \(Self.allowedGrowth)", growth < Self.allowedGrowth)
        let opened = resources[2].descriptors - resources[0].descriptors
        findings.line(
            "  growth of descriptors: \(opened), bar \(Self.allowedDescriptors)",
            opened <= Self.allowedDescriptors
        )
        return findings.haveHeld
    }
}
