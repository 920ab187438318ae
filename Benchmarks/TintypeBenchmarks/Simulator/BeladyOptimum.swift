// SPDX-License-Identifier: Apache-2.0

/// The best possible policy for entries of one size, which evicts the entry whose next request is the last.
///
/// It knows the future, and may reject an entry.
///
/// Source: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems
/// Journal 5(2), 1966.
enum BeladyOptimum {
    /// The share of requests that are hits.
    static func hitRatio(of trace: CacheTrace, capacity: Int) -> Double {
        let nextUses = self.nextUses(of: trace)
        var next = [Int](repeating: -1, count: trace.weights.count)
        var (count, hits) = (0, 0)
        var heap = Heap()
        for (position, key) in trace.keys.enumerated() {
            if next[key] >= 0 {
                hits += 1
            } else if nextUses[position] < .max {
                count += 1
            }
            if nextUses[position] == .max {
                if next[key] >= 0 { count -= 1 }
                next[key] = -1
                continue
            }
            next[key] = nextUses[position]
            heap.push(Heap.Element(nextUse: nextUses[position], key: key))
            while count > capacity, let last = heap.pop() {
                // Older elements of a key are void.
                guard next[last.key] == last.nextUse else { continue }
                next[last.key] = -1
                count -= 1
            }
        }
        return Double(hits) / Double(trace.keys.count)
    }

    /// For each request the position of the next one for the same key.
    private static func nextUses(of trace: CacheTrace) -> [Int] {
        var nextUses = [Int](repeating: .max, count: trace.keys.count)
        var last = [Int](repeating: .max, count: trace.weights.count)
        for position in trace.keys.indices.reversed() {
            nextUses[position] = last[trace.keys[position]]
            last[trace.keys[position]] = position
        }
        return nextUses
    }

    /// Gives the key with the latest next use.
    private struct Heap {
        struct Element {
            let nextUse: Int
            let key: Int
        }

        private var elements: [Element] = []

        mutating func push(_ element: Element) {
            self.elements.append(element)
            var child = self.elements.count - 1
            while child > 0, self.elements[(child - 1) / 2].nextUse < self.elements[child].nextUse {
                self.elements.swapAt(child, (child - 1) / 2)
                child = (child - 1) / 2
            }
        }

        mutating func pop() -> Element? {
            guard let first = self.elements.first else { return nil }
            self.elements.swapAt(0, self.elements.count - 1)
            self.elements.removeLast()
            var parent = 0
            while true {
                var largest = parent
                for child in [2 * parent + 1, 2 * parent + 2] where child < self.elements.count {
                    if self.elements[child].nextUse > self.elements[largest].nextUse { largest = child }
                }
                if largest == parent { return first }
                self.elements.swapAt(parent, largest)
                parent = largest
            }
        }
    }
}
