// SPDX-License-Identifier: Apache-2.0

/// A binary heap: reading the least element takes constant time, and removing or inserting one logarithmic time.
struct Heap<Element: Comparable> {
    private var elements: [Element] = []

    var count: Int { self.elements.count }
    var first: Element? { self.elements.first }

    mutating func insert(_ element: Element) {
        self.elements.append(element)
        var child = self.elements.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard self.elements[child] < self.elements[parent] else { return }
            self.elements.swapAt(child, parent)
            child = parent
        }
    }

    @discardableResult
    mutating func popFirst() -> Element? {
        guard let last = self.elements.popLast() else { return nil }
        guard let first = self.elements.first else { return last }
        self.elements[0] = last
        self.sink()
        return first
    }

    /// Removes the elements for which `isWanted` returns false.
    mutating func filter(_ isWanted: (Element) -> Bool) {
        // A sorted array is a heap.
        self.elements = self.elements.filter(isWanted).sorted()
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var least = parent
            for child in (parent * 2 + 1)..<(parent * 2 + 3) where child < self.elements.count {
                if self.elements[child] < self.elements[least] { least = child }
            }
            guard least != parent else { return }
            self.elements.swapAt(parent, least)
            parent = least
        }
    }
}
