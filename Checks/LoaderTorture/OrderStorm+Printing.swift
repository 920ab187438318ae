// SPDX-License-Identifier: Apache-2.0

import TintypeOrderStorm

extension OrderStorm {
    /// Runs storms of two seconds, with a new seed each time, and prints the results.
    ///
    /// - Returns: Whether no load returned an outdated result.
    static func run(seconds: Double, seed: UInt64) async throws -> Bool {
        let end = ContinuousClock.now + .seconds(seconds)
        var report = Report()
        var seed = seed
        while .now < end {
            let part = min(end, .now + .seconds(2))
            report.add(try await OrderStorm(seed: seed).run { _ in ContinuousClock.now >= part })
            seed &+= 1
        }
        LoaderTorture.say("order: \(report.callCount) calls, \(report.requestCount) requests of the origin")
        for (name, count) in report.outcomes.sorted(by: { $0.key < $1.key }) {
            LoaderTorture.say("    \(name): \(count)")
        }
        LoaderTorture.say("  \(report.violationCount) violations")
        for violation in report.violations { LoaderTorture.say("  wrong: \(violation)") }
        return report.violationCount == 0
    }
}
