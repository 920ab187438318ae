// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// The entries of a memory tier in slots, found by key.
///
/// The table has no limits and no eviction order. ``MemoryLedger`` decides about them, and changes the table while no
/// thread reads it.
struct MemoryTable: ~Copyable, Sendable {
    /// The part of an entry that every hit reads in addition to the image.
    struct Mark: Sendable {
        var life: EntryLife
        /// The slot of the entry in the policy.
        var policySlot: Int32
        let hash: UInt64
    }

    /// The part of an entry that is read less often.
    struct Rest: Sendable {
        let key: CacheKey
        let metadata: EntryMetadata?
        let frames: [Image]
        let data: Data?
        let cost: Int
    }

    private var table = KeyTable()
    // Separate arrays: reading one of the parts retains no object of another.
    private var images = SlotMemory<Image?>()
    private var marks = SlotMemory<Mark>()
    private var rests = SlotMemory<Rest?>()
    private var freeSlots: [Int] = []
    /// The evicted entries that may be in use elsewhere.
    var weak = WeakTable()

    /// The number of slots, including free ones.
    var slotCount: Int { self.marks.count }

    /// Returns the slot of `key`, or `nil` if there is no entry.
    @inline(__always)
    func slot(of key: CacheKey) -> Int? {
        self.table.slot(of: key)
    }

    /// Returns the image in `slot`.
    @inline(__always)
    func image(in slot: Int) -> Image? {
        self.images[slot]
    }

    /// Returns the life of the entry in `slot`, and its slot in the policy.
    @inline(__always)
    func mark(in slot: Int) -> Mark {
        self.marks[slot]
    }

    /// Returns the cost of the entry in `slot`.
    func cost(in slot: Int) -> Int {
        self.rests[slot]?.cost ?? 0
    }

    /// Returns the entry in `slot`.
    func entry(in slot: Int) -> MemoryEntry? {
        guard let image = self.images[slot], let rest = self.rests[slot] else { return nil }
        return MemoryEntry(image: image, metadata: rest.metadata, frames: rest.frames, data: rest.data)
    }

    /// Returns the entry of `key`, even if it was evicted and is in use elsewhere.
    func peek(_ key: CacheKey) -> (entry: MemoryEntry, life: EntryLife)? {
        guard let slot = self.slot(of: key) else { return self.weak.entry(of: key) }
        return self.entry(in: slot).map { ($0, self.mark(in: slot).life) }
    }

    /// Returns the keys of a family, including keys of evicted entries.
    func keys(inFamilyOf key: CacheKey) -> [CacheKey] {
        self.table.keys { $0.isOfFamily(of: key) } + self.weak.keys { $0.isOfFamily(of: key) }
    }

    /// Stores an entry for a new key, and returns its slot.
    mutating func insert(_ image: Image, _ mark: Mark, _ rest: Rest) -> Int {
        let slot: Int
        if let free = self.freeSlots.popLast() {
            slot = free
            self.images[slot] = image
            self.marks[slot] = mark
            self.rests[slot] = rest
        } else {
            slot = self.images.count
            self.images.append(image)
            self.marks.append(mark)
            self.rests.append(rest)
        }
        self.table.insert(rest.key, slot: slot)
        return slot
    }

    /// Extends the life of the entry in `slot`, which was read at `time`.
    mutating func extendLife(in slot: Int, at time: Double) {
        var mark = self.marks[slot]
        mark.life.extend(at: time)
        self.marks[slot] = mark
    }

    /// Changes the slot in the policy of the entry in `slot`.
    mutating func setPolicySlot(_ policySlot: Int, in slot: Int) {
        var mark = self.marks[slot]
        mark.policySlot = Int32(policySlot)
        self.marks[slot] = mark
    }

    /// Removes the entry in `slot`.
    mutating func remove(_ slot: Int) -> (entry: MemoryEntry, mark: Mark, rest: Rest)? {
        guard let entry = self.entry(in: slot), let rest = self.rests[slot] else { return nil }
        let mark = self.marks[slot]
        // A free slot must not expire.
        self.marks[slot].life = .endless
        self.images[slot] = nil
        self.rests[slot] = nil
        self.table.remove(slot)
        self.freeSlots.append(slot)
        return (entry, mark, rest)
    }

    /// Removes all entries, even if they are in use elsewhere.
    mutating func removeAll() -> [MemoryEntry] {
        let removed = (0..<self.images.count).compactMap { self.entry(in: $0) }
        self = MemoryTable()
        return removed
    }

    /// Looks `key` up and records the access in `buffer`; records a miss only if `countsMiss` is true.
    @inline(__always)
    func lookUp<Value: Sendable>(
        _ key: CacheKey,
        ticks: UInt64,
        noting buffer: inout AccessBuffer,
        countsMiss: Bool = true,
        _ pick: (borrowing MemoryTable, Int) -> Value?
    ) -> MemoryLookUp<Value> {
        guard let slot = self.slot(of: key) else {
            // The look-up goes on among the evicted entries, and is counted there.
            let mayBeAlive = self.weak.contains(key)
            if !mayBeAlive, countsMiss { buffer.didMiss() }
            return MemoryLookUp(value: nil, life: .endless, isBufferDue: false, mayBeAlive: mayBeAlive)
        }
        let mark = self.mark(in: slot)
        let isDue = buffer.didHit(.init(ticks: ticks, hash: mark.hash, slot: mark.policySlot))
        return MemoryLookUp(value: pick(self, slot), life: mark.life, isBufferDue: isDue, mayBeAlive: false)
    }
}

/// The result of a look-up in the memory tier, and the work that it leaves to the caller.
struct MemoryLookUp<Value: Sendable>: Sendable {
    /// The value, or `nil` for a miss.
    let value: Value?
    /// The life of the entry.
    let life: EntryLife
    /// Whether the caller must empty the stripe's buffer.
    let isBufferDue: Bool
    /// Whether the image was evicted, but may be in use elsewhere.
    let mayBeAlive: Bool

    /// Whether there is no work left, which is nearly always so.
    var isSettled: Bool { !self.isBufferDue && !self.mayBeAlive && self.life.isEndless }
}

/// The look-ups of one stripe that the policy has not received yet.
///
/// A hit only appends to the buffer. The policy receives many look-ups at once, in their order, before its next choice.
/// If no thread has time to pass them on, the buffer drops further look-ups. There are so many of them then that a
/// sample suffices.
struct AccessBuffer: Sendable {
    /// A look-up that found an entry.
    struct Access: Sendable {
        /// The time of the look-up in ticks of the processor's clock.
        let ticks: UInt64
        /// The hash of the key, because the slot may belong to another entry by now.
        let hash: UInt64
        let slot: Int32
    }

    private static let capacity = 256
    private static let portion = 64

    private(set) var hits = 0
    private(set) var misses = 0
    private var accesses: [Access] = {
        var accesses: [Access] = []
        accesses.reserveCapacity(capacity)
        return accesses
    }()

    /// Records a hit, and returns whether it is time to pass the look-ups to the policy.
    mutating func didHit(_ access: Access) -> Bool {
        self.hits &+= 1
        if self.accesses.count < Self.capacity { self.accesses.append(access) }
        // A full buffer asks only at every 64th hit.
        return self.accesses.count < Self.capacity
            ? self.accesses.count % Self.portion == 0 : self.hits % Self.portion == 0
    }

    /// Records a miss.
    mutating func didMiss() {
        self.misses &+= 1
    }

    /// Moves the look-ups to the end of `others`.
    mutating func drain(into others: inout [Access]) {
        others.append(contentsOf: self.accesses)
        self.accesses.removeAll(keepingCapacity: true)
    }
}
