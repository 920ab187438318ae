import TintypeImage

/// Images that left the cache and may still be alive elsewhere.
///
/// Holds their pixels weakly. A slot whose image has died is reclaimed while others are added, two
/// looked at for each, so that at most about half of the slots are dead and nothing ever waits for a scan.
struct WeakTable: ~Copyable, Sendable {
    /// An image without its pixels.
    private struct WeakImage: Sendable {
        weak var pixels: PixelBuffer?
        let orientation: Orientation
        let sourceFormat: ImageFormat?
        let colorProfile: ColorProfile?
        let scale: Double
        let damage: ImageDamage

        init(_ image: Image) {
            self.pixels = image.pixels
            self.orientation = image.orientation
            self.sourceFormat = image.sourceFormat
            self.colorProfile = image.colorProfile
            self.scale = image.scale
            self.damage = image.damage
        }

        /// The image, as long as its pixels are held elsewhere.
        var image: Image? {
            self.pixels.map {
                Image(
                    pixels: $0,
                    orientation: self.orientation,
                    sourceFormat: self.sourceFormat,
                    colorProfile: self.colorProfile,
                    scale: self.scale,
                    damage: self.damage
                )
            }
        }
    }

    private struct Slot: Sendable {
        let content: WeakImage
        let frames: [WeakImage]
        let metadata: EntryMetadata?
        let life: EntryLife
    }

    private var table = KeyTable()
    private var slots: [Slot?] = []
    private var freeSlots: [Int] = []
    /// Where the search for dead slots goes on.
    private var hand = 0

    /// The slots, dead ones included.
    var count: Int { self.table.count }

    /// Whether there may be an image under `key`.
    func contains(_ key: CacheKey) -> Bool {
        self.table.count > 0 && self.table.slot(of: key) != nil
    }

    /// The keys that `isIncluded` holds for.
    func keys(where isIncluded: (CacheKey) -> Bool) -> [CacheKey] { self.table.keys(where: isIncluded) }

    /// The entry of `key`, if all of its images are alive.
    func entry(of key: CacheKey) -> (entry: MemoryEntry, life: EntryLife)? {
        guard let slot = self.table.slot(of: key).flatMap({ self.slots[$0] }),
            let image = slot.content.image
        else { return nil }
        let frames = slot.frames.compactMap { $0.image }
        guard frames.count == slot.frames.count else { return nil }
        return (MemoryEntry(image: image, metadata: slot.metadata, frames: frames), slot.life)
    }

    /// The bytes of metadata and key that an entry may have which nothing counts any more.
    private static let uncountedByteLimit = 4_096

    /// Keeps an entry for as long as its pixels live elsewhere; data that rode along is let go.
    ///
    /// One with much metadata, or a very long key, is let go as well: what is here is counted nowhere.
    mutating func insert(_ entry: MemoryEntry, life: EntryLife, for key: CacheKey) {
        self.remove(key)
        self.reclaim()
        let byteCount = (entry.metadata?.memoryByteCount ?? 0) + key.text.utf8.count
        guard byteCount <= Self.uncountedByteLimit else { return }
        let slot = self.freeSlots.popLast() ?? self.slots.count
        if slot == self.slots.count { self.slots.append(nil) }
        self.slots[slot] = Slot(
            content: WeakImage(entry.image),
            frames: entry.frames.map { WeakImage($0) },
            metadata: entry.metadata,
            life: life
        )
        self.table.insert(key, slot: slot)
    }

    /// Takes out the entry of `key`, if all of its images are alive; forgets it otherwise.
    mutating func take(_ key: CacheKey) -> (entry: MemoryEntry, life: EntryLife)? {
        defer { self.remove(key) }
        return self.entry(of: key)
    }

    /// Forgets the entry of `key`.
    mutating func remove(_ key: CacheKey) {
        if let slot = self.table.slot(of: key) { self.free(slot) }
    }

    /// Forgets all entries.
    mutating func removeAll() {
        self = WeakTable()
    }

    private mutating func reclaim() {
        for _ in 0..<2 where !self.slots.isEmpty {
            self.hand = self.hand + 1 < self.slots.count ? self.hand + 1 : 0
            if let slot = self.slots[self.hand], slot.content.pixels == nil { self.free(self.hand) }
        }
    }

    private mutating func free(_ slot: Int) {
        self.table.remove(slot)
        self.slots[slot] = nil
        self.freeSlots.append(slot)
        if self.table.count == 0 { self.removeAll() }
    }
}
