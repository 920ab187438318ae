// SPDX-License-Identifier: Apache-2.0

/// Runs fleets of several sizes and kinds with the same traffic.
struct Study: Sendable {
    /// The seconds after the start that are counted apart, because all caches are empty.
    static let first = 0.0..<10.0

    let options: Options

    /// Runs each fleet and reports its figures as soon as they are known.
    func run(_ report: (StudyRow) throws -> Void) throws {
        for nodeCount in self.options.nodeCounts {
            let workload = try Workload(self.options, nodeCount: nodeCount)
            for sharing in self.options.sharings {
                for balancing in self.options.balancings {
                    try report(self.row(workload, nodeCount, sharing, balancing))
                }
            }
        }
    }

    private func row(
        _ workload: Workload,
        _ nodeCount: Int,
        _ sharing: FleetSettings.Sharing,
        _ balancing: Balancer.Rule
    ) -> StudyRow {
        var settings = self.options.fleet
        settings.nodeCount = nodeCount
        settings.sharing = sharing
        settings.balancing = balancing
        if self.options.lostCount > 0 {
            settings.losses = [
                FleetSettings.Loss(
                    nodes: 0..<self.options.lostCount,
                    time: self.options.lossTime,
                    duration: self.options.lossDuration
                )
            ]
        }
        // A run that is counted from its start has no first window of its own.
        let hasFirst = workload.window.lowerBound >= Self.first.upperBound
        let windows = hasFirst ? [Self.first, workload.window] : [workload.window]
        let outcome = workload.outcome(of: settings, windows: windows)
        return StudyRow(
            settings: settings,
            first: outcome.windows[0],
            counts: outcome.windows[windows.count - 1],
            outcome: outcome
        )
    }
}
