// SPDX-License-Identifier: Apache-2.0

/// A hash table with open addressing that assigns slots to hashes.
///
/// The table has no keys. The hashes have 64 bits and depend on a secret seed. If two keys have the same hash by
/// accident, they share their statistics.
struct SlotDirectory: Sendable {
    private var buckets = [Int32](repeating: -1, count: 16)
    private var hashes: [UInt64] = []
    private var freeSlots: [Int32] = []
    private var count = 0

    /// Returns the hash of a slot in use.
    func hash(of slot: Int) -> UInt64 {
        self.hashes[slot]
    }

    /// Returns the slot of `hash`, or `nil` if it has no slot.
    func slot(of hash: UInt64) -> Int? {
        let slot = self.buckets[self.position(of: hash)]
        return slot < 0 ? nil : Int(slot)
    }

    /// Assigns a slot to `hash`, which must not have one yet.
    mutating func insert(_ hash: UInt64) -> Int {
        if (self.count + 1) * 4 > self.buckets.count * 3 { self.grow() }
        self.count += 1
        let slot: Int
        if let free = self.freeSlots.popLast() {
            slot = Int(free)
            self.hashes[slot] = hash
        } else {
            slot = self.hashes.count
            self.hashes.append(hash)
        }
        self.buckets[self.position(of: hash)] = Int32(slot)
        return slot
    }

    /// Frees a slot in use.
    mutating func remove(_ slot: Int) {
        let mask = self.buckets.count - 1
        var hole = self.position(of: self.hashes[slot])
        // Move every bucket that a search reaches only across the hole into the hole.
        var next = (hole + 1) & mask
        while self.buckets[next] >= 0 {
            let home = Int(truncatingIfNeeded: self.hashes[Int(self.buckets[next])]) & mask
            if (next &- home) & mask >= (next &- hole) & mask {
                self.buckets[hole] = self.buckets[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        self.buckets[hole] = -1
        self.count -= 1
        self.freeSlots.append(Int32(slot))
    }

    /// Returns the bucket of `hash`, or the empty bucket for it.
    private func position(of hash: UInt64) -> Int {
        let mask = self.buckets.count - 1
        var position = Int(truncatingIfNeeded: hash) & mask
        while self.buckets[position] >= 0, self.hashes[Int(self.buckets[position])] != hash {
            position = (position + 1) & mask
        }
        return position
    }

    private mutating func grow() {
        let old = self.buckets
        self.buckets = [Int32](repeating: -1, count: old.count * 2)
        for slot in old where slot >= 0 {
            self.buckets[self.position(of: self.hashes[Int(slot)])] = slot
        }
    }
}
