// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeDownloading
import TintypeTestSupport

/// Ten thousand transfers at once from an origin that drips.
///
/// Measures the memory per transfer while all of them run, and subtracts the memory of libcurl alone for as many
/// transfers with its default settings.
struct Crowd {
    private static let count = 10_000
    /// So many bytes, each second a few: all transfers overlap.
    private static let bodySize = 1_200
    private static let bytesPerSecond = 60
    /// The limit on resident bytes per transfer, in addition to libcurl itself.
    private static let allowedBytes = 20_000
    /// The highest allowed share of one core while all transfers drip.
    private static let allowedShare = 0.25

    func run() async throws -> Bool {
        let origin = try NginxOrigin(
            files: ["drip": Data(repeating: 7, count: Self.bodySize)],
            directives: "limit_rate \(Self.bytesPerSecond); open_file_cache max=10; reset_timedout_connection on;",
            connections: 16_000
        )
        let baseline = try CurlCrowd.run(count: Self.count, address: origin.url("/drip").absoluteString)
        let before = try Resources.now()
        var configuration = DownloadActor.Configuration()
        // They drip on purpose.
        configuration.minimumSpeed = nil
        configuration.maximumTransfers = Self.count
        configuration.maximumConnectionsPerHost = Self.count
        let downloads = DownloadActor(configuration: configuration)
        let address = origin.url("/drip").absoluteString
        let start = ContinuousClock.now
        let crowd = Task {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<Self.count {
                    group.addTask {
                        guard let url = URL(string: "\(address)?\(number)") else {
                            throw TestSupportError("bad address")
                        }
                        let response = try await downloads.response(for: DownloadRequest(url: url))
                        guard response.body.count == Self.bodySize else {
                            throw TestSupportError("a body is not whole")
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        while await downloads.counters.receivedHeads < Self.count {
            // Otherwise the wait would have no end.
            let counters = await downloads.counters
            guard counters.succeeded + counters.failed == 0 else {
                crowd.cancel()
                throw TestSupportError(
                    "\(counters.succeeded) were done and \(counters.failed) failed before all had begun"
                )
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        let during = try Resources.now()
        let idleStart = ContinuousClock.now
        try await Task.sleep(for: .seconds(3))
        let later = try Resources.now()
        let idleShare = (later.cpuSeconds - during.cpuSeconds) / ((.now - idleStart) / .seconds(1))
        guard await downloads.counters.succeeded == 0 else {
            throw TestSupportError("some were done before all had begun")
        }
        try await crowd.value
        let seconds = (.now - start) / .seconds(1)
        let after = try Resources.now()
        return self.report(baseline, before, during, after, idleShare: idleShare, seconds: seconds)
    }

    private func report(
        _ baseline: CurlCrowd.Answer,
        _ before: Resources,
        _ during: Resources,
        _ after: Resources,
        idleShare: Double,
        seconds: Double
    ) -> Bool {
        let resident = (during.residentBytes - before.residentBytes) / Self.count
        let heap = (during.heapBytes - before.heapBytes) / Self.count
        let own = resident - baseline.residentBytes
        // The other threads are the main thread and the threads of Swift's pool and timers.
        let loops = during.threads.count { $0 == "tintype-curl" }
        let isAlone = loops == 1 && !during.threads.contains { $0.hasPrefix("tintype-") && $0 != "tintype-curl" }
        var findings = Findings()
        findings.line("crowd: \(Self.count) transfers at once, all whole, in \(seconds) s")
        findings.line(
            "  resident bytes of each: \(resident), of libcurl alone \(baseline.residentBytes): "
                + "ours \(own), bar \(Self.allowedBytes)",
            own < Self.allowedBytes
        )
        findings.line("  heap bytes of each: \(heap), of libcurl alone \(baseline.heapBytes)")
        findings.line("  threads: \(before.threads) before, \(during.threads) during, bar one of our own", isAlone)
        findings.line(
            "  share of a core while all drip: \(idleShare), bar \(Self.allowedShare)",
            idleShare < Self.allowedShare
        )
        findings.line(
            "  descriptors: \(before.descriptors) before, \(during.descriptors) during, \(after.descriptors) after"
        )
        return findings.haveHeld
    }
}
