/// A queue whose both ends cost constant time.
struct FIFO<Element> {
    private var elements: [Element?] = []
    private var head = 0

    var isEmpty: Bool { self.head == self.elements.count }

    mutating func append(_ element: Element) {
        self.elements.append(element)
    }

    mutating func popFirst() -> Element? {
        guard !self.isEmpty else { return nil }
        defer { self.advance() }
        return self.elements[self.head].take()
    }

    private mutating func advance() {
        self.head += 1
        if self.isEmpty {
            self.elements.removeAll(keepingCapacity: self.head <= 1_024)
            self.head = 0
        } else if self.head >= 32, self.head * 2 >= self.elements.count {
            // The front half is used up: each element is moved at most once on average.
            self.elements.removeFirst(self.head)
            self.head = 0
        }
    }
}
