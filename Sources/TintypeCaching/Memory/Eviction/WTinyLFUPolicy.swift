/// A small window for what is new, and a main part into which only what is asked for more often gets.
///
/// The main part is a segmented LRU with four fifths for entries that were used again. What leaves the
/// window takes the place of the main part's oldest only if a sketch counted more requests for it. The
/// window starts with a hundredth of the room and follows the hit ratio, uphill.
///
/// Source: Einziger, Friedman and Manes, "TinyLFU", 2017; Einziger, Eytan, Friedman and Manes, "Adaptive
/// software cache management", Middleware 2018; weights, constants and steps as in Caffeine 3.
package struct WTinyLFUPolicy: ReplacementPolicy {
    private enum Part: UInt8 {
        case window, probation, protected, none
    }

    private struct Entry {
        var hash: UInt64 = 0
        var weight = 0
        var part = Part.none
    }

    private let capacity: Int
    private var windowCapacity: Int
    private var protectedCapacity: Int
    /// The weight of each part.
    private var weights = [0, 0, 0]
    private var count = 0
    private var entries = SlotTable(Entry())
    private var parts = SlotRings(count: 3)
    private var sketch = FrequencySketch()
    private var climber: HillClimber
    private var random: UInt64 = 0x9E37_79B9_7F4A_7C15

    package init(capacity: Int) {
        self.capacity = capacity
        self.windowCapacity = capacity - capacity / 100 * 99 - capacity % 100 * 99 / 100
        self.protectedCapacity = (capacity - self.windowCapacity) / 5 * 4 + (capacity - self.windowCapacity) % 5 * 4 / 5
        self.climber = HillClimber(capacity: capacity)
    }

    package func holds(_ slot: Int) -> Bool {
        self.entries[slot].part != .none
    }

    package func remembers(_ slot: Int) -> Bool {
        self.holds(slot)
    }

    package mutating func request(_ slot: Int, hash: UInt64, weight: Int, lost: inout [Int32]) -> Bool {
        self.sketch.increment(hash)
        let part = self.entries[slot].part
        switch part {
        case .window, .protected: self.parts.moveToNewest(slot, of: Int(part.rawValue))
        case .probation: self.promote(slot)
        case .none: self.take(slot, hash, weight, &lost)
        }
        if let step = self.climber.didRequest(wasHit: part != .none, period: self.sketch.period) {
            self.resizeWindow(by: step)
        }
        return part != .none
    }

    package mutating func forget(_ slot: Int) {
        guard self.holds(slot) else { return }
        self.move(slot, to: .none)
        self.count -= 1
    }

    // MARK: Parts

    private mutating func take(_ slot: Int, _ hash: UInt64, _ weight: Int, _ lost: inout [Int32]) {
        guard weight <= self.capacity else { return }
        self.entries[slot] = Entry(hash: hash, weight: weight, part: .none)
        self.count += 1
        self.sketch.reserve(self.count)
        self.move(slot, to: .window)
        // What is larger than the window goes straight on, and leaves the others where they are.
        if weight > self.windowCapacity { self.parts.moveToOldest(slot, of: 0) }
        var candidate: Int?
        while self.weights[0] > self.windowCapacity, let leaving = self.parts.oldest(of: 0) {
            self.move(leaving, to: .probation)
            if candidate == nil { candidate = leaving }
        }
        self.evict(candidate, &lost)
    }

    private mutating func promote(_ slot: Int) {
        guard self.entries[slot].weight <= self.protectedCapacity else { return self.parts.moveToNewest(slot, of: 1) }
        self.move(slot, to: .protected)
        self.demote()
    }

    private mutating func demote() {
        while self.weights[2] > self.protectedCapacity, let slot = self.parts.oldest(of: 2) {
            self.move(slot, to: .probation)
        }
    }

    /// Lets those that came from the window, of which `first` is the oldest, compete with the oldest
    /// of the main part until the rest fits.
    private mutating func evict(_ first: Int?, _ lost: inout [Int32]) {
        var candidate = first
        while self.weights[0] + self.weights[1] + self.weights[2] > self.capacity {
            guard let victim = self.parts.oldest(of: 1) ?? self.parts.oldest(of: 2) ?? self.parts.oldest(of: 0)
            else { return }
            guard let rival = candidate, rival != victim else {
                if candidate == victim { candidate = self.parts.newer(than: victim) }
                self.drop(victim, &lost)
                continue
            }
            candidate = self.parts.newer(than: rival)
            self.drop(self.isAdmitted(rival, over: victim) ? victim : rival, &lost)
        }
    }

    private mutating func isAdmitted(_ rival: Int, over victim: Int) -> Bool {
        let frequency = self.sketch.frequency(self.entries[rival].hash)
        if frequency > self.sketch.frequency(self.entries[victim].hash) { return true }
        // Now and then a popular one gets in by chance: no one can keep others out by choosing keys.
        guard frequency >= 6 else { return false }
        self.random ^= self.random << 13
        self.random ^= self.random >> 7
        self.random ^= self.random << 17
        return self.random & 127 == 0
    }

    private mutating func drop(_ slot: Int, _ lost: inout [Int32]) {
        self.forget(slot)
        lost.append(Int32(slot))
    }

    private mutating func move(_ slot: Int, to part: Part) {
        let entry = self.entries[slot]
        if entry.part != .none {
            self.parts.remove(slot)
            self.weights[Int(entry.part.rawValue)] -= entry.weight
        }
        if part != .none {
            self.parts.append(slot, to: Int(part.rawValue))
            self.weights[Int(part.rawValue)] += entry.weight
        }
        self.entries[slot].part = part
    }

    // MARK: Window

    private mutating func resizeWindow(by step: Int) {
        if step > 0 { self.growWindow(by: step) }
        if step < 0 { self.shrinkWindow(by: -step) }
    }

    private mutating func growWindow(by step: Int) {
        var quota = min(step, self.protectedCapacity)
        self.windowCapacity += quota
        self.protectedCapacity -= quota
        self.demote()
        while let slot = self.parts.oldest(of: 1) ?? self.parts.oldest(of: 2), self.entries[slot].weight <= quota {
            quota -= self.entries[slot].weight
            self.move(slot, to: .window)
        }
        self.windowCapacity -= quota
        self.protectedCapacity += quota
    }

    private mutating func shrinkWindow(by step: Int) {
        var quota = min(step, max(0, self.windowCapacity - 1))
        self.windowCapacity -= quota
        self.protectedCapacity += quota
        while let slot = self.parts.oldest(of: 0), self.entries[slot].weight <= quota {
            quota -= self.entries[slot].weight
            self.move(slot, to: .probation)
        }
        self.windowCapacity += quota
        self.protectedCapacity -= quota
    }
}
