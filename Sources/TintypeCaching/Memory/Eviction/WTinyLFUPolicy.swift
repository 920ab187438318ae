// SPDX-License-Identifier: Apache-2.0

/// A policy with a small window for new entries, and a main part that admits only entries with more requests.
///
/// The main part is a segmented LRU with four fifths for entries that were used again. An entry that leaves the window
/// replaces the oldest entry of the main part only if a sketch counted more requests for it. The window starts with a
/// hundredth of the capacity, and a hill climber adapts its size to the hit ratio.
///
/// Source: Einziger, Friedman and Manes, "TinyLFU", 2017; Einziger, Eytan, Friedman and Manes, "Adaptive software cache
/// management", Middleware 2018. Weights, constants and steps are as in Caffeine 3.
package struct WTinyLFUPolicy: SimulatedPolicy {
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
        // An entry larger than the window passes straight through, so that the others stay in the window.
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

    /// Evicts entries until the rest fits.
    ///
    /// The entries that left the window, of which `first` is the oldest, compete with the oldest of the main part.
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
        // Admit a popular candidate at random, so that nobody can shut others out by a choice of keys.
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

/// A search for the best window size, which goes on while the hit ratio rises and turns round when it falls.
///
/// Source: Einziger, Eytan, Friedman and Manes, "Adaptive software cache management", Middleware 2018, with the
/// constants of Caffeine: the first step is a sixteenth of the capacity, steps shrink by 2 %, and the search starts
/// again if the hit ratio changes by 5 points.
struct HillClimber: Sendable {
    private let largestStep: Double
    private var step: Double
    private var hits = 0
    private var requests = 0
    private var lastRatio = 0.0

    init(capacity: Int) {
        self.largestStep = 0.0625 * Double(capacity)
        self.step = -self.largestStep
    }

    /// Records a request; at the end of a period, returns the change of the window's size.
    mutating func didRequest(wasHit: Bool, period: Int) -> Int? {
        self.requests += 1
        if wasHit { self.hits += 1 }
        guard self.requests >= period else { return nil }
        let ratio = Double(self.hits) / Double(self.requests)
        let change = ratio - self.lastRatio
        let amount = change >= 0 ? self.step : -self.step
        self.step = abs(change) >= 0.05 ? (amount >= 0 ? self.largestStep : -self.largestStep) : 0.98 * amount
        self.lastRatio = ratio
        self.hits = 0
        self.requests = 0
        return Int(amount)
    }
}

/// An estimate of how often each key was requested recently.
///
/// A count-min sketch with counters up to 15, four for each key and half a byte each. All counters are halved after ten
/// requests per entry of the cache, so that old popularity fades.
///
/// Source: Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy", ACM Transactions on
/// Storage 13(4), 2017.
package struct FrequencySketch: Sendable {
    /// The counters, sixteen in a word; the number of words is a power of two.
    private var words = [UInt64](repeating: 0, count: 8)
    private var additions = 0
    /// The number of entries for which the sketch was sized last.
    private(set) var entryCount = 8

    /// The number of requests after which all counters are halved.
    var period: Int { self.entryCount * 10 }

    /// Returns the estimate for a key, at most 15.
    func frequency(_ hash: UInt64) -> Int {
        var lowest: UInt64 = 15
        for row in 0..<4 {
            let (word, shift) = self.place(hash, row)
            lowest = min(lowest, self.words[word] >> shift & 15)
        }
        return Int(lowest)
    }

    /// Records a request.
    mutating func increment(_ hash: UInt64) {
        var isAdded = false
        for row in 0..<4 {
            let (word, shift) = self.place(hash, row)
            guard self.words[word] >> shift & 15 < 15 else { continue }
            self.words[word] += 1 << shift
            isAdded = true
        }
        guard isAdded else { return }
        self.additions += 1
        if self.additions >= self.period { self.halve() }
    }

    /// Grows for a cache of `count` entries, without losing counts.
    mutating func reserve(_ count: Int) {
        guard count > self.entryCount else { return }
        self.entryCount = count
        // The place of a key in the larger table has the same low bits, so the copy there has its count.
        while self.words.count < count { self.words += self.words }
    }

    private mutating func halve() {
        var odd = 0
        for index in self.words.indices {
            odd += (self.words[index] & 0x1111_1111_1111_1111).nonzeroBitCount
            self.words[index] = self.words[index] >> 1 & 0x7777_7777_7777_7777
        }
        self.additions = (self.additions - odd / 4) / 2
    }

    /// Returns the word and the shift of one of the four counters of a key.
    @inline(__always)
    private func place(_ hash: UInt64, _ row: Int) -> (word: Int, shift: UInt64) {
        let row = UInt64(truncatingIfNeeded: row)
        // Derive four places from two halves of the hash (Kirsch and Mitzenmacher, 2006).
        let mixed = hash >> 8 &+ row &* (hash >> 32 | 1)
        let word = Int(truncatingIfNeeded: mixed) & (self.words.count - 1)
        return (word, ((hash & 3) << 2 | row) << 2)
    }
}
