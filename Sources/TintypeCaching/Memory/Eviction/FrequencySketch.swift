/// How often keys were asked for lately, roughly, in half a byte for each of four counters a key.
///
/// A count-min sketch with counters up to 15. All are halved when ten times as many requests were
/// counted as the cache has entries, so that what was popular once is forgotten.
///
/// Source: Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy", ACM
/// Transactions on Storage 13(4), 2017.
package struct FrequencySketch: Sendable {
    /// Each has sixteen counters; a power of two of them.
    private var words = [UInt64](repeating: 0, count: 8)
    private var additions = 0
    /// The entries that the sketch was last made for.
    private(set) var entryCount = 8

    /// The number of requests after which all counters are halved.
    var period: Int { self.entryCount * 10 }

    /// The estimate for a key, at most 15.
    func frequency(_ hash: UInt64) -> Int {
        var lowest: UInt64 = 15
        for row in 0..<4 {
            let (word, shift) = self.place(hash, row)
            lowest = min(lowest, self.words[word] >> shift & 15)
        }
        return Int(lowest)
    }

    /// Counts a request.
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

    /// Grows for a cache of `count` entries, and keeps the counts.
    mutating func reserve(_ count: Int) {
        guard count > self.entryCount else { return }
        self.entryCount = count
        // A key's place in the larger table is one of those with the same low bits: the copy has its count.
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

    /// The word and the shift of one of the four counters of a key.
    @inline(__always)
    private func place(_ hash: UInt64, _ row: Int) -> (word: Int, shift: UInt64) {
        let row = UInt64(truncatingIfNeeded: row)
        // Four places from two halves of the hash (Kirsch and Mitzenmacher, 2006).
        let mixed = hash >> 8 &+ row &* (hash >> 32 | 1)
        let word = Int(truncatingIfNeeded: mixed) & (self.words.count - 1)
        return (word, ((hash & 3) << 2 | row) << 2)
    }
}
