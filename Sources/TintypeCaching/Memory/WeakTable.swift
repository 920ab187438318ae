// SPDX-License-Identifier: Apache-2.0

import TintypeImage

/// The evicted entries whose images may still be in use elsewhere.
///
/// The table holds pixels weakly. Each insertion examines two slots and frees them if their images are dead. So at most
/// about half of the slots are dead, and no caller waits for a full scan.
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

        /// The image, or `nil` if its pixels are no longer in use.
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
    /// The slot at which the search for dead slots continues.
    private var hand = 0

    /// The number of entries, including dead ones.
    var count: Int { self.table.count }

    /// Returns whether there may be an image for `key`.
    func contains(_ key: CacheKey) -> Bool {
        self.table.count > 0 && self.table.slot(of: key) != nil
    }

    /// Returns the keys that satisfy `isIncluded`.
    func keys(where isIncluded: (CacheKey) -> Bool) -> [CacheKey] { self.table.keys(where: isIncluded) }

    /// Returns the entry of `key` if all of its images are alive.
    func entry(of key: CacheKey) -> (entry: MemoryEntry, life: EntryLife)? {
        guard let slot = self.table.slot(of: key).flatMap({ self.slots[$0] }),
            let image = slot.content.image
        else { return nil }
        let frames = slot.frames.compactMap { $0.image }
        guard frames.count == slot.frames.count else { return nil }
        return (MemoryEntry(image: image, metadata: slot.metadata, frames: frames), slot.life)
    }

    /// The maximum bytes of metadata and key of an entry here, which no limit counts any more.
    private static let uncountedByteLimit = 4_096

    /// Stores an entry without its data for as long as its pixels are in use elsewhere.
    ///
    /// Refuses an entry with much metadata or a very long key, because no limit counts them here.
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

    /// Removes the entry of `key`, and returns it if all of its images are alive.
    mutating func take(_ key: CacheKey) -> (entry: MemoryEntry, life: EntryLife)? {
        defer { self.remove(key) }
        return self.entry(of: key)
    }

    /// Removes the entry of `key`.
    mutating func remove(_ key: CacheKey) {
        if let slot = self.table.slot(of: key) { self.free(slot) }
    }

    /// Removes all entries.
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
