// SPDX-License-Identifier: Apache-2.0

/// Sides that run the same operations, measured in turn.
///
/// The machine may be noisy and its speed may drift, so sides are not measured separately. Each round takes one sample
/// of every side, in random order, and compares sides only within the round. A ratio is the median of the rounds'
/// ratios.
struct Contest: Sendable {
    /// Our side's name in the table.
    static let ours = "tintype"

    /// A side and its measurements.
    private struct Side: Sendable {
        let name: String
        let contestant: Contestant?
        let absence: String?
        var count = 1
        var measurements: [Measurement] = []
    }

    private var sides: [Side] = []

    /// Adds a side.
    ///
    /// If it cannot be created, the contest continues and its rows give the reason.
    mutating func enter(_ name: String, _ make: () async throws -> Contestant) async {
        do {
            self.sides.append(Side(name: name, contestant: try await make(), absence: nil))
        } catch {
            self.sides.append(Side(name: name, contestant: nil, absence: "\(error)"))
        }
    }

    /// Enters our side.
    mutating func enterOurs(_ make: () async throws -> Contestant) async {
        await self.enter(Self.ours, make)
    }

    /// Warms up each side, chooses the number of operations in a sample, and runs the rounds.
    mutating func measure(_ plan: Plan) async throws {
        let present = self.sides.indices.filter { self.sides[$0].contestant != nil }
        for index in present {
            self.sides[index].count = try await self.settleCount(of: index, plan)
        }
        for _ in 0..<plan.rounds {
            for index in present.shuffled() {
                guard let contestant = self.sides[index].contestant else { continue }
                let measurement = try await self.naming(index) { try await contestant.run(self.sides[index].count) }
                self.sides[index].measurements.append(measurement)
            }
        }
    }

    /// Returns a row for each peer, or a single row without a peer if no peer takes part.
    func rows(named name: String, _ metric: Metric, bars: (_ peer: String?) -> [Bar] = { _ in [] }) -> [Row] {
        let ours = self.sides.first { $0.name == Self.ours }
        let peers = self.sides.filter { $0.name != Self.ours }
        let shown = peers.isEmpty ? [nil] : peers.map(Optional.some)
        return shown.map { peer in
            let ourFigures = (ours?.measurements ?? []).map(metric.figure)
            let theirFigures = (peer?.measurements ?? []).map(metric.figure)
            let ratios = zip(ourFigures, theirFigures).map { metric.advantage(of: $0, over: $1) }
            return Row(
                name: name,
                metric: metric,
                peer: peer?.name,
                ours: Summary(ifAny: ourFigures),
                theirs: Summary(ifAny: theirFigures),
                ratio: Summary(ifAny: ratios),
                bars: bars(peer?.name),
                notes: [ours, peer].compactMap { $0 }.compactMap(Self.note)
            )
        }
    }

    private static func note(_ side: Side) -> String? {
        (side.absence ?? side.contestant?.note).map { "\(side.name): \($0)" }
    }

    private func settleCount(of index: Int, _ plan: Plan) async throws -> Int {
        guard let contestant = self.sides[index].contestant else { return 1 }
        let allowed = contestant.smallestCount...contestant.largestCount
        var count = contestant.smallestCount
        while true {
            let seconds = try await self.naming(index) { try await contestant.run(count) }.wallSeconds
            let wanted = Int(min(Double(count) * plan.sampleSeconds / max(seconds, 1e-7), Double(allowed.upperBound)))
            let next = min(max(wanted, allowed.lowerBound), allowed.upperBound)
            // The first runs are cold, so continue until a run takes about as long as a sample.
            if seconds >= plan.sampleSeconds / 2 || next <= count { return next }
            count = min(next, count * 20)
        }
    }

    private func naming<Result>(
        _ index: Int,
        _ body: nonisolated(nonsending) () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch {
            throw Unavailable("\(self.sides[index].name) failed: \(error)")
        }
    }
}

extension Summary {
    /// Summarises `samples`, or returns `nil` if they are empty.
    fileprivate init?(ifAny samples: [Double]) {
        guard !samples.isEmpty else { return nil }
        self.init(samples)
    }
}
