/// What a look-up in the memory tier found, and what is left to do about it.
struct MemoryLookUp<Value: Sendable>: Sendable {
    /// What was found, or `nil` for nothing.
    let value: Value?
    /// The life of the entry.
    let life: EntryLife
    /// Whether the stripe's buffer is to be emptied.
    let isBufferDue: Bool
    /// Whether the picture may be alive elsewhere.
    let mayBeAlive: Bool

    /// Whether there is nothing left to do, as nearly always.
    var isSettled: Bool { !self.isBufferDue && !self.mayBeAlive && self.life.isEndless }
}

extension MemoryTable {
    /// Looks `key` up, and notes it in `buffer`, a miss only where it counts.
    @inline(__always)
    func lookUp<Value: Sendable>(
        _ key: CacheKey,
        ticks: UInt64,
        noting buffer: inout AccessBuffer,
        countsMiss: Bool = true,
        _ pick: (borrowing MemoryTable, Int) -> Value?
    ) -> MemoryLookUp<Value> {
        guard let slot = self.slot(of: key) else {
            // A look-up that goes on among the weak ones is counted there.
            let mayBeAlive = self.weak.contains(key)
            if !mayBeAlive, countsMiss { buffer.didMiss() }
            return MemoryLookUp(value: nil, life: .endless, isBufferDue: false, mayBeAlive: mayBeAlive)
        }
        let mark = self.mark(in: slot)
        let isDue = buffer.didHit(.init(ticks: ticks, hash: mark.hash, slot: mark.policySlot))
        return MemoryLookUp(value: pick(self, slot), life: mark.life, isBufferDue: isDue, mayBeAlive: false)
    }
}
