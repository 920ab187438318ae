/// Turns colour indices into the LZW codes of one GIF image.
///
/// The table is begun anew when it is full. Source: GIF89a, appendix F.
struct GIFCodeWriter {
    private static let maximumCode = 4_095
    private static let slotCount = 8_192
    private static let emptySlot = UInt32.max

    /// A hash table: the code of a string and the index behind it (above), and the code of both (12 bits).
    private var slots = [UInt32](repeating: emptySlot, count: slotCount)
    private var bytes: [UInt8] = []
    private var bits: UInt32 = 0
    private var bitCount: UInt32 = 0
    private let minimumCodeSize: Int
    private var codeSize: UInt32
    private var nextCode: Int

    private init(minimumCodeSize: Int) {
        self.minimumCodeSize = minimumCodeSize
        self.codeSize = UInt32(minimumCodeSize) + 1
        self.nextCode = (1 << minimumCodeSize) + 2
    }

    /// The image data of `indices`, which have `minimumCodeSize` bits, at least 2.
    ///
    /// It is the first code size, the blocks of codes, the end.
    static func imageData(_ indices: [UInt8], minimumCodeSize: Int) -> [UInt8] {
        var writer = GIFCodeWriter(minimumCodeSize: minimumCodeSize)
        writer.write(indices)
        return [UInt8(minimumCodeSize)] + Self.blocks(of: writer.bytes)
    }

    private mutating func write(_ indices: [UInt8]) {
        let clearCode = 1 << self.minimumCodeSize
        self.emit(clearCode)
        guard let first = indices.first else { return self.finish(endCode: clearCode + 1) }
        var prefix = Int(first)
        for index in indices.dropFirst() {
            let key = UInt32(prefix << 8) | UInt32(index)
            var slot = Int((key &* 0x9E37_79B1) >> 19)
            var found: Int?
            while self.slots[slot] != Self.emptySlot {
                if self.slots[slot] >> 12 == key {
                    found = Int(self.slots[slot] & 0xFFF)
                    break
                }
                slot = (slot + 1) & (Self.slotCount - 1)
            }
            if let found {
                prefix = found
                continue
            }
            self.emit(prefix)
            self.slots[slot] = key << 12 | UInt32(self.nextCode)
            self.countCode()
            if self.nextCode > Self.maximumCode {
                self.emit(clearCode)
                self.reset()
            }
            prefix = Int(index)
        }
        self.emit(prefix)
        self.countCode()
        self.finish(endCode: clearCode + 1)
    }

    /// Counts the string that each code adds to the reader's table: its number decides on the size of the next code.
    private mutating func countCode() {
        if self.nextCode == 1 << Int(self.codeSize), self.codeSize < 12 { self.codeSize += 1 }
        self.nextCode += 1
    }

    private mutating func reset() {
        for slot in self.slots.indices { self.slots[slot] = Self.emptySlot }
        self.codeSize = UInt32(self.minimumCodeSize) + 1
        self.nextCode = (1 << self.minimumCodeSize) + 2
    }

    private mutating func emit(_ code: Int) {
        self.bits |= UInt32(code) << self.bitCount
        self.bitCount += self.codeSize
        while self.bitCount >= 8 {
            self.bytes.append(UInt8(truncatingIfNeeded: self.bits))
            self.bits >>= 8
            self.bitCount -= 8
        }
    }

    private mutating func finish(endCode: Int) {
        self.emit(endCode)
        if self.bitCount > 0 { self.bytes.append(UInt8(truncatingIfNeeded: self.bits)) }
    }

    private static func blocks(of bytes: [UInt8]) -> [UInt8] {
        var blocks: [UInt8] = []
        blocks.reserveCapacity(bytes.count + bytes.count / 255 + 2)
        for start in stride(from: 0, to: bytes.count, by: 255) {
            let end = min(start + 255, bytes.count)
            blocks.append(UInt8(end - start))
            blocks += bytes[start..<end]
        }
        blocks.append(0)
        return blocks
    }
}
