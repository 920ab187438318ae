/// Reads the bits of a VP8L stream, the lowest of each byte first.
///
/// Behind the last byte there are zeros; ``isExhausted`` says that some of them were read.
struct VP8LBitReader {
    private let bytes: UnsafeRawBufferPointer
    /// The next byte that is not in `bits` yet.
    private(set) var offset: Int
    /// Bits that were not read yet, the next one lowest; above the counted ones there may be others.
    private(set) var bits: UInt64 = 0
    /// How many of the bits are counted: below zero when there were too few.
    private(set) var bitCount = 0

    init(_ bytes: UnsafeRawBufferPointer, at bitOffset: Int) {
        self.bytes = bytes
        self.offset = bitOffset / 8
        self.refill()
        self.skip(bitOffset % 8)
    }

    /// The number of bits that were read from the first byte on.
    var bitOffset: Int { self.offset * 8 - self.bitCount }

    /// Whether more bits were read than there are.
    var isExhausted: Bool { self.bitCount < 0 }

    /// Whether the next `count` bytes are all there.
    func has(_ count: Int) -> Bool { self.bytes.count - self.offset >= count }

    /// Makes 56 bits readable, or as many as there are.
    @inline(__always)
    mutating func refill() {
        if self.bytes.count &- self.offset >= 8, self.bitCount >= 0 {
            let next = self.bytes.loadUnaligned(fromByteOffset: self.offset, as: UInt64.self)
            self.bits |= UInt64(littleEndian: next) &<< UInt64(self.bitCount)
            self.offset &+= (63 &- self.bitCount) &>> 3
            self.bitCount |= 56
        } else {
            self.refillSlowly()
        }
    }

    @inline(never)
    private mutating func refillSlowly() {
        guard self.bitCount >= 0 else { return self.bits = 0 }
        // What a fast refill left above the counted bits would be read twice.
        self.bits &= UInt64(1) &<< UInt64(self.bitCount) &- 1
        while self.bitCount <= 48, self.offset < self.bytes.count {
            self.bits |= UInt64(self.bytes[self.offset]) &<< UInt64(self.bitCount)
            self.offset += 1
            self.bitCount += 8
        }
    }

    /// Passes over bits that were looked at, 56 at most after a refill.
    @inline(__always)
    mutating func skip(_ count: Int) {
        self.bits &>>= UInt64(count)
        self.bitCount &-= count
    }

    /// Reads a number of up to 24 bits.
    @inline(__always)
    mutating func read(_ count: Int) -> Int {
        if self.bitCount < count { self.refill() }
        let value = Int(truncatingIfNeeded: self.bits & (UInt64(1) &<< UInt64(count) &- 1))
        self.skip(count)
        return value
    }
}
