// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FleetSimulation

@Suite struct BalancerTests {
    private static let items = 20_000

    private static func nodes(_ balancer: inout Balancer) -> [Int?] {
        (0..<self.items).map { balancer.node(forResult: $0, source: 0) }
    }

    @Test(arguments: [3, 10, 50]) func `the loss of a node moves its items only`(count: Int) {
        var balancer = Balancer(rule: .resultHash, nodeCount: count, itemCount: Self.items)
        let before = Self.nodes(&balancer)
        balancer.setAlive(false, node: 1)
        let after = Self.nodes(&balancer)
        let moved = zip(before, after).filter { $0 != $1 }
        #expect(moved.allSatisfy { $0.0 == 1 })
        #expect(after.allSatisfy { $0 != 1 })
        // The share of a node, within five deviations.
        let share = Double(Self.items) / Double(count)
        #expect(abs(Double(moved.count) - share) < 5 * share.squareRoot())
        balancer.setAlive(true, node: 1)
        #expect(Self.nodes(&balancer) == before)
    }

    @Test func `the items of a lost node spread over all others`() {
        var balancer = Balancer(rule: .resultHash, nodeCount: 10, itemCount: Self.items)
        let before = Self.nodes(&balancer)
        balancer.setAlive(false, node: 4)
        let after = Self.nodes(&balancer)
        var counts: [Int: Int] = [:]
        for (old, new) in zip(before, after) where old == 4 { counts[new ?? -1, default: 0] += 1 }
        #expect(counts.count == 9)
        #expect(counts.values.allSatisfy { (140...320).contains($0) })
    }

    @Test(arguments: [2, 7, 100]) func `a hash spreads items evenly`(count: Int) {
        var balancer = Balancer(rule: .resultHash, nodeCount: count, itemCount: Self.items)
        var counts = [Int](repeating: 0, count: count)
        for node in Self.nodes(&balancer) { counts[node ?? 0] += 1 }
        let mean = Double(Self.items) / Double(count)
        #expect(counts.allSatisfy { abs(Double($0) - mean) < 5 * mean.squareRoot() })
    }

    @Test func `all sizes of a source have one node if the source is hashed`() {
        var balancer = Balancer(rule: .sourceHash, nodeCount: 8, itemCount: 100)
        let nodes = (50..<90).map { balancer.node(forResult: $0, source: 3) }
        #expect(Set(nodes).count == 1)
    }

    @Test func `nodes take turns, and lost ones are skipped`() {
        var balancer = Balancer(rule: .roundRobin, nodeCount: 3, itemCount: 1)
        #expect((0..<4).map { _ in balancer.node(forResult: 0, source: 0) } == [1, 2, 0, 1])
        balancer.setAlive(false, node: 2)
        #expect((0..<3).map { _ in balancer.node(forResult: 0, source: 0) } == [0, 1, 0])
    }

    @Test(arguments: Balancer.Rule.allCases) func `a fleet without a living node has no node for a request`(
        rule: Balancer.Rule
    ) {
        var balancer = Balancer(rule: rule, nodeCount: 2, itemCount: 1)
        balancer.setAlive(false, node: 0)
        balancer.setAlive(false, node: 1)
        #expect(balancer.node(forResult: 0, source: 0) == nil)
    }
}
