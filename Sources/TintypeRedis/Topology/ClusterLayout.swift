// SPDX-License-Identifier: Apache-2.0

/// The nodes of a cluster and the slots that they serve: a reply to `CLUSTER SLOTS`.
struct ClusterLayout: Equatable {
    /// The most nodes of a cluster that Redis recommends.
    private static let nodeLimit = 1_000

    private(set) var masters: [RedisAddress] = []
    private(set) var replicas: [RedisAddress] = []
    /// The number of the slot's master in ``masters``, or -1 for a slot that no node serves.
    private var owners = [Int16](repeating: -1, count: KeySlot.count)

    /// Reads a reply of the node `address`; returns `nil` if it has another form.
    init?(_ reply: RedisValue, from address: RedisAddress) {
        guard let ranges = reply.elements, ranges.count <= KeySlot.count else { return nil }
        var slotCount = 0
        for range in ranges {
            guard let parts = range.elements, parts.count >= 3, let first = parts[0].number, let last = parts[1].number,
                0 <= first, first <= last, last < KeySlot.count
            else { return nil }
            let nodes = parts[2...].compactMap { Self.node($0, from: address) }
            slotCount += Int(last - first) + 1
            // Each slot belongs to one range. More nodes than a cluster can have would take all of the loop's time.
            guard nodes.count == parts.count - 2, slotCount <= KeySlot.count, nodes.count <= Self.nodeLimit else {
                return nil
            }
            self.serve(Int(first)...Int(last), by: nodes[0])
            for replica in nodes.dropFirst() where !self.replicas.contains(replica) { self.replicas.append(replica) }
            guard self.masters.count + self.replicas.count <= Self.nodeLimit else { return nil }
        }
        self.replicas.removeAll(where: self.masters.contains)
    }

    /// The master of a slot, or `nil` if no node serves it.
    func master(of slot: Int) -> RedisAddress? {
        let owner = Int(self.owners[slot])
        return owner < 0 ? nil : self.masters[owner]
    }

    /// Records that a node serves slots now.
    mutating func serve(_ slots: ClosedRange<Int>, by master: RedisAddress) {
        let index = self.masters.firstIndex(of: master) ?? self.masters.endIndex
        if index == self.masters.endIndex {
            guard index <= Self.nodeLimit else { return }
            self.masters.append(master)
        }
        for slot in slots { self.owners[slot] = Int16(index) }
    }

    private static func node(_ value: RedisValue, from address: RedisAddress) -> RedisAddress? {
        guard let parts = value.elements, parts.count >= 2, let port = parts[1].number, (1...65_535).contains(port)
        else {
            return nil
        }
        // A node that does not know its own name sends none, or an empty one.
        let host = parts[0].text ?? ""
        guard !host.utf8.contains(0) else { return nil }
        return RedisAddress(host.isEmpty || host == "?" ? address.host : host, port: Int(port))
    }
}
