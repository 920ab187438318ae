import FoundationEssentials
import TintypeImage

/// The entries of a memory tier by key, in slots: what a look-up reads.
///
/// Knows no limits and no order; ``MemoryLedger`` decides, and changes it while no thread reads.
struct MemoryTable: ~Copyable, Sendable {
    /// What is asked for at every hit beside the image.
    struct Mark: Sendable {
        var life: EntryLife
        /// The slot of the entry in the policy.
        var policySlot: Int32
        let hash: UInt64
    }

    /// What is asked for less often.
    struct Rest: Sendable {
        let key: CacheKey
        let metadata: EntryMetadata?
        let frames: [Image]
        let data: Data?
        let cost: Int
    }

    private var table = KeyTable()
    // Apart from each other: to read one of them copies no reference of another.
    private var images = SlotMemory<Image?>()
    private var marks = SlotMemory<Mark>()
    private var rests = SlotMemory<Rest?>()
    private var freeSlots: [Int] = []
    /// What left the cache and may be alive elsewhere.
    var weak = WeakTable()

    /// The slots, those that are free included.
    var slotCount: Int { self.marks.count }

    /// The slot of `key`, or `nil` when there is no entry.
    @inline(__always)
    func slot(of key: CacheKey) -> Int? {
        self.table.slot(of: key)
    }

    /// The image in `slot`.
    @inline(__always)
    func image(in slot: Int) -> Image? {
        self.images[slot]
    }

    /// The life of the entry in `slot`, and where the policy has it.
    @inline(__always)
    func mark(in slot: Int) -> Mark {
        self.marks[slot]
    }

    /// What the entry in `slot` is counted with.
    func cost(in slot: Int) -> Int {
        self.rests[slot]?.cost ?? 0
    }

    /// The whole entry in `slot`.
    func entry(in slot: Int) -> MemoryEntry? {
        guard let image = self.images[slot], let rest = self.rests[slot] else { return nil }
        return MemoryEntry(image: image, metadata: rest.metadata, frames: rest.frames, data: rest.data)
    }

    /// The entry of `key`, also one that left the cache and is alive elsewhere.
    func peek(_ key: CacheKey) -> (entry: MemoryEntry, life: EntryLife)? {
        guard let slot = self.slot(of: key) else { return self.weak.entry(of: key) }
        return self.entry(in: slot).map { ($0, self.mark(in: slot).life) }
    }

    /// The keys of a family, also those of entries that left the cache.
    func keys(inFamilyOf key: CacheKey) -> [CacheKey] {
        self.table.keys { $0.isOfFamily(of: key) } + self.weak.keys { $0.isOfFamily(of: key) }
    }

    /// Puts an entry under a key that has none, and returns its slot.
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

    /// Puts the end of the entry in `slot` off, as it was read at `time`.
    mutating func extendLife(in slot: Int, at time: Double) {
        var mark = self.marks[slot]
        mark.life.extend(at: time)
        self.marks[slot] = mark
    }

    /// Notes that a new policy has the entry in `slot` elsewhere.
    mutating func setPolicySlot(_ policySlot: Int, in slot: Int) {
        var mark = self.marks[slot]
        mark.policySlot = Int32(policySlot)
        self.marks[slot] = mark
    }

    /// Takes the entry in `slot` out.
    mutating func remove(_ slot: Int) -> (entry: MemoryEntry, mark: Mark, rest: Rest)? {
        guard let entry = self.entry(in: slot), let rest = self.rests[slot] else { return nil }
        let mark = self.marks[slot]
        // Nothing that is free expires.
        self.marks[slot].life = .endless
        self.images[slot] = nil
        self.rests[slot] = nil
        self.table.remove(slot)
        self.freeSlots.append(slot)
        return (entry, mark, rest)
    }

    /// Takes all entries out, also those that are alive elsewhere.
    mutating func removeAll() -> [MemoryEntry] {
        let removed = (0..<self.images.count).compactMap { self.entry(in: $0) }
        self = MemoryTable()
        return removed
    }

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

/// What a look-up in the memory tier found, and what is left to do about it.
struct MemoryLookUp<Value: Sendable>: Sendable {
    /// What was found, or `nil` for nothing.
    let value: Value?
    /// The life of the entry.
    let life: EntryLife
    /// Whether the stripe's buffer is to be emptied.
    let isBufferDue: Bool
    /// Whether the image may be alive elsewhere.
    let mayBeAlive: Bool

    /// Whether there is nothing left to do, as nearly always.
    var isSettled: Bool { !self.isBufferDue && !self.mayBeAlive && self.life.isEndless }
}

/// The look-ups of one stripe that the policy has not heard of yet.
///
/// Writing one down is all that a hit costs beside the look-up itself; the policy learns of many at once,
/// in their order, before it next has to choose. When no thread has time to tell it, further ones are lost:
/// then there are so many of them that a part says enough.
struct AccessBuffer: Sendable {
    /// A look-up that found an entry.
    struct Access: Sendable {
        /// When it was, in ticks of the processor's clock.
        let ticks: UInt64
        /// The hash of the key: the slot may have another entry by now.
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

    /// Notes a hit; says whether it is time to tell the policy.
    mutating func didHit(_ access: Access) -> Bool {
        self.hits &+= 1
        if self.accesses.count < Self.capacity { self.accesses.append(access) }
        // A full buffer asks again only now and then.
        return self.accesses.count < Self.capacity
            ? self.accesses.count % Self.portion == 0 : self.hits % Self.portion == 0
    }

    /// Notes a look-up that found nothing.
    mutating func didMiss() {
        self.misses &+= 1
    }

    /// Moves the look-ups to the end of `others`.
    mutating func drain(into others: inout [Access]) {
        others.append(contentsOf: self.accesses)
        self.accesses.removeAll(keepingCapacity: true)
    }
}
