/// The distinct colours of pictures, as long as they are few.
///
/// Colours are opaque pixels, red in the lowest byte; pixels that are zero are transparent and left out.
struct ColorSet {
    private static let slotCount = 1_024
    /// No opaque pixel is zero.
    private var slots = [UInt32](repeating: 0, count: slotCount)
    private var indices = [UInt8](repeating: 0, count: slotCount)
    /// The colours in the order in which they were met.
    private(set) var colors: [UInt32] = []
    /// Whether there were more than 256.
    private(set) var hasOverflowed = false

    /// Adds a colour; the 257th is not added.
    mutating func insert(_ color: UInt32) {
        guard !self.hasOverflowed, color != 0 else { return }
        let slot = self.slot(of: color)
        guard self.slots[slot] == 0 else { return }
        guard self.colors.count < 256 else {
            self.hasOverflowed = true
            return
        }
        self.slots[slot] = color
        self.indices[slot] = UInt8(self.colors.count)
        self.colors.append(color)
    }

    /// Adds the colours of a picture.
    mutating func insert(all pixels: [UInt32]) {
        var last: UInt32 = 0
        for pixel in pixels where pixel != last {
            self.insert(pixel)
            if self.hasOverflowed { return }
            last = pixel
        }
    }

    /// The place of a colour in ``colors``, or `nil` for one that is not there.
    func index(of color: UInt32) -> UInt8? {
        let slot = self.slot(of: color)
        return self.slots[slot] == color && color != 0 ? self.indices[slot] : nil
    }

    /// The slot that holds a colour, or where it belongs; the table is never more than a quarter full.
    private func slot(of color: UInt32) -> Int {
        var slot = Int((color &* 0x9E37_79B1) >> 22)
        while self.slots[slot] != 0, self.slots[slot] != color { slot = (slot + 1) & (Self.slotCount - 1) }
        return slot
    }
}
