// SPDX-License-Identifier: Apache-2.0

/// Chooses the node for each request.
struct Balancer: Sendable {
    enum Rule: String, CaseIterable, Sendable {
        /// Nodes take turns.
        case roundRobin = "round-robin"
        /// Each result has its node, as with `hash $request_uri consistent` of nginx.
        case resultHash = "result-hash"
        /// Each source has its node, which makes all sizes of it.
        case sourceHash = "source-hash"
    }

    private let rule: Rule
    private var isAlive: [Bool]
    private var turn = 0
    /// The node of each item as long as all nodes are alive, or -1 if it is not computed yet.
    private var preferred: [Int32]

    init(rule: Rule, nodeCount: Int, itemCount: Int) {
        self.rule = rule
        self.isAlive = [Bool](repeating: true, count: nodeCount)
        self.preferred = [Int32](repeating: -1, count: rule == .roundRobin ? 0 : itemCount)
    }

    /// Adds or removes a node.
    mutating func setAlive(_ isAlive: Bool, node: Int) {
        self.isAlive[node] = isAlive
    }

    func isAlive(_ node: Int) -> Bool { self.isAlive[node] }

    /// Returns the node for a result of a source, or `nil` if all nodes are lost.
    mutating func node(forResult result: Int, source: Int) -> Int? {
        switch self.rule {
        case .roundRobin: self.nextInTurn()
        case .resultHash: self.node(forItem: result)
        case .sourceHash: self.node(forItem: source)
        }
    }

    private mutating func nextInTurn() -> Int? {
        for _ in self.isAlive.indices {
            self.turn = (self.turn + 1) % self.isAlive.count
            if self.isAlive[self.turn] { return self.turn }
        }
        return nil
    }

    /// The living node with the highest score for an item (rendezvous hashing).
    ///
    /// If a node is lost, only its items move, and they move to all others evenly.
    private mutating func node(forItem item: Int) -> Int? {
        if self.preferred[item] < 0, let best = self.isAlive.indices.max(by: { self.precedes($0, $1, item) }) {
            self.preferred[item] = Int32(best)
        }
        let best = Int(self.preferred[item])
        if self.isAlive[best] { return best }
        return self.isAlive.indices.filter { self.isAlive[$0] }.max { self.precedes($0, $1, item) }
    }

    private func precedes(_ left: Int, _ right: Int, _ item: Int) -> Bool {
        Self.score(item: item, node: left) < Self.score(item: item, node: right)
    }

    private static func score(item: Int, node: Int) -> UInt64 {
        SeededGenerator.mix(SeededGenerator.mix(UInt64(item) &+ 0x9E37_79B9_7F4A_7C15) ^ UInt64(node) << 40)
    }
}
