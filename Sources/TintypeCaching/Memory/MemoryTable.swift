import FoundationEssentials
import TintypeImage

/// The entries of a memory tier by key, in slots: what a look-up reads.
///
/// Knows no limits and no order; ``MemoryLedger`` decides, and changes it while nobody reads.
struct MemoryTable: ~Copyable, Sendable {
    /// What is asked for at every hit, close together.
    struct Item: Sendable {
        let image: Image
        var life: EntryLife
        /// The slot of the entry in the policy.
        let policySlot: Int32
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
    private var items = SlotMemory<Item?>()
    private var rests = SlotMemory<Rest?>()
    private var freeSlots: [Int] = []
    /// What left the cache and may be alive elsewhere.
    var weak = WeakTable()

    /// The slot of `key`, or `nil` when there is no entry.
    @inline(__always)
    func slot(of key: CacheKey) -> Int? {
        self.table.slot(of: key)
    }

    /// The picture in `slot`.
    @inline(__always)
    func image(in slot: Int) -> Image? {
        self.items.address(of: slot).pointee?.image
    }

    /// When the entry in `slot` ends.
    @inline(__always)
    func life(in slot: Int) -> EntryLife? {
        self.items.address(of: slot).pointee?.life
    }

    /// The slot of the entry in `slot` in the policy, or -1.
    @inline(__always)
    func policySlot(in slot: Int) -> Int32 {
        self.items.address(of: slot).pointee?.policySlot ?? -1
    }

    /// What the entry in `slot` is counted with, and the hash of its key.
    func weight(in slot: Int) -> (cost: Int, hash: UInt64)? {
        guard let item = self.items[slot], let rest = self.rests[slot] else { return nil }
        return (rest.cost, item.hash)
    }

    /// The whole entry in `slot`.
    func entry(in slot: Int) -> MemoryEntry? {
        guard let item = self.items[slot], let rest = self.rests[slot] else { return nil }
        return MemoryEntry(image: item.image, metadata: rest.metadata, frames: rest.frames, data: rest.data)
    }

    /// Puts an entry under a key that has none, and returns its slot.
    mutating func insert(_ item: Item, _ rest: Rest) -> Int {
        let slot = self.freeSlots.popLast() ?? self.items.count
        if slot == self.items.count {
            self.items.append(nil)
            self.rests.append(nil)
        }
        self.items[slot] = item
        self.rests[slot] = rest
        self.table.insert(rest.key, slot: slot)
        return slot
    }

    /// Puts the end of the entry in `slot` off, as it was read at `time`.
    mutating func extendLife(in slot: Int, at time: Double) {
        guard var item = self.items[slot] else { return }
        item.life.extend(at: time)
        self.items[slot] = item
    }

    /// Puts the entry in `slot` at another slot of a new policy.
    mutating func setPolicySlot(_ policySlot: Int, in slot: Int) {
        guard let item = self.items[slot] else { return }
        self.items[slot] = Item(
            image: item.image,
            life: item.life,
            policySlot: Int32(policySlot),
            hash: item.hash
        )
    }

    /// Takes the entry in `slot` out.
    mutating func remove(_ slot: Int) -> (item: Item, rest: Rest)? {
        guard let item = self.items[slot], let rest = self.rests[slot] else { return nil }
        self.items[slot] = nil
        self.rests[slot] = nil
        self.table.remove(slot)
        self.freeSlots.append(slot)
        return (item, rest)
    }

    /// Takes all entries out, also those that are alive elsewhere.
    mutating func removeAll() -> [MemoryEntry] {
        let removed = (0..<self.items.count).compactMap { self.entry(in: $0) }
        self = MemoryTable()
        return removed
    }
}
