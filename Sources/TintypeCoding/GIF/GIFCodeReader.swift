/// Turns the variable-length LZW codes of one GIF image into colour indices.
///
/// Takes bytes in pieces of any size and keeps what is left of a code between them. A string of the table is
/// not stored: an entry names the place in the output where the string was written first, so that each code is one copy
/// of earlier output. The output lies in a window that begins with the 256 single indices, goes back to its start
/// with each clear code, and is therefore small enough for the processor's cache. Source: GIF89a, appendix F.
struct GIFCodeReader: ~Copyable {
    /// Why reading stopped.
    enum Status {
        /// The bytes are used up.
        case needsBytes
        /// The image has all its pixels.
        case isComplete
        /// The end code came before the last pixel.
        case hasEnded
        /// A code names a string that does not exist.
        case isDamaged
    }

    private static let maximumCodeSize = 12
    private static let entryCount = 1 << 12
    /// The longest string: it grows by one index with each code.
    private static let maximumLength = 1 << 12
    /// The output from a clear code until the table is full, at most: each string is longer by one index.
    private static let maximumTableOutput = entryCount * (maximumLength + 1) / 2
    /// What is collected before it is written as pixels, once the table is full.
    private static let portion = 1 << 14
    /// Strings are copied in pieces of this size, beyond their end.
    private static let pieceSize = 16

    private let window: UnsafeMutableRawPointer
    private let windowEnd: Int
    /// For each code, where its string begins in the window (above) and its length (16 bits).
    private let entries: UnsafeMutablePointer<UInt64>
    private let clearCode: Int

    private var bits: UInt64 = 0
    private var bitCount = 0
    private var codeSize: Int
    /// Codes below it name whole strings; it names the string that the next index completes, or is the end code.
    private var limit: Int
    /// Where the next index is written.
    private var position = 256
    /// Where the indices begin that are not written as pixels yet.
    private var pendingStart = 256
    /// Where the output goes on after writing pixels: behind all strings of a full table.
    private var tableEnd = 0

    /// Whether codes can be read that begin with a size; 8 is enough for all indices, but more is met.
    static func supports(minimumCodeSize: Int) -> Bool { (1..<self.maximumCodeSize).contains(minimumCodeSize) }

    /// The memory that reading an image of some pixels takes, about.
    static func byteCount(pixelCount: Int) -> Int {
        min(max(0, pixelCount), Self.maximumTableOutput) + Self.portion + Self.entryCount * 8
    }

    /// Prepares to read an image; `minimumCodeSize` is one that is supported.
    init(minimumCodeSize: Int, pixelCount: Int) {
        let size = min(max(1, minimumCodeSize), Self.maximumCodeSize - 1)
        self.windowEnd = 256 + min(max(0, pixelCount), Self.maximumTableOutput) + Self.portion
        self.window = .allocate(
            byteCount: self.windowEnd + Self.maximumLength + 2 * Self.pieceSize,
            alignment: Self.pieceSize
        )
        self.entries = .allocate(capacity: Self.entryCount + 1)
        self.clearCode = 1 << size
        self.codeSize = size + 1
        self.limit = self.clearCode + 1
        for index in 0..<256 { self.window.storeBytes(of: UInt8(index), toByteOffset: index, as: UInt8.self) }
        for code in 0..<self.clearCode { self.entries[code] = UInt64(code & 0xFF) << 16 | 1 }
        // No length marks the two codes that name no string.
        self.entries[self.clearCode] = 0
        self.entries[self.clearCode + 1] = 0
    }

    deinit {
        self.window.deallocate()
        self.entries.deallocate()
    }

    /// The indices that were collected and are not written as pixels.
    var pendingCount: Int { self.position - self.pendingStart }

    /// Writes the indices that were collected as pixels.
    mutating func flush(to writer: inout GIFRowWriter) {
        let pending = UnsafeRawPointer(self.window + self.pendingStart).assumingMemoryBound(to: UInt8.self)
        writer.write(pending, count: self.position - self.pendingStart)
        // The strings of the table stay where they are; what a full table gives is not looked at again.
        if self.limit == Self.entryCount { self.position = min(self.position, self.tableEnd) }
        self.pendingStart = self.position
    }

    /// The position from which on pixels must be written, or the image is complete.
    private func threshold(_ writer: borrowing GIFRowWriter) -> Int {
        let space = self.limit == Self.entryCount ? self.tableEnd + Self.portion : self.windowEnd
        return min(space, self.windowEnd, self.pendingStart + writer.remaining)
    }

    /// Reads as many codes as there are in `bytes`.
    mutating func read(_ bytes: UnsafeRawBufferPointer, to writer: inout GIFRowWriter) -> Status {
        guard writer.remaining > 0 else { return .isComplete }
        guard var cursor = bytes.baseAddress else { return .needsBytes }
        let end = cursor + bytes.count
        let (window, entries) = (self.window, self.entries)
        var (bits, bitCount) = (self.bits, self.bitCount)
        var (codeSize, limit, position) = (self.codeSize, self.limit, self.position)
        var mask = UInt64(1) &<< UInt64(codeSize) &- 1
        var threshold = self.threshold(writer)
        var status = Status.needsBytes

        reading: while true {
            if end - cursor >= 8 {
                // The bits above the counted ones are read again with the next bytes.
                bits |= UInt64(littleEndian: cursor.loadUnaligned(as: UInt64.self)) &<< UInt64(bitCount)
                cursor += (63 &- bitCount) &>> 3
                bitCount |= 56
            } else {
                while bitCount <= 56, cursor < end {
                    bits |= UInt64(cursor.load(as: UInt8.self)) &<< UInt64(bitCount)
                    cursor += 1
                    bitCount &+= 8
                }
                if bitCount < codeSize { break reading }
            }
            repeat {
                let code = Int(truncatingIfNeeded: bits & mask)
                bits = bits &>> UInt64(codeSize)
                bitCount &-= codeSize
                guard code <= limit else {
                    status = .isDamaged
                    break reading
                }
                let entry = entries[code]
                let length = Int(truncatingIfNeeded: entry & 0xFFFF)
                if length == 0 {
                    guard code == self.clearCode else {
                        status = .hasEnded
                        break reading
                    }
                    (self.limit, self.position) = (limit, position)
                    self.clearTable(writer: &writer)
                    (codeSize, limit, position) = (self.codeSize, self.limit, self.position)
                    mask = UInt64(1) &<< UInt64(codeSize) &- 1
                    threshold = self.threshold(writer)
                    if writer.remaining > 0 { continue }
                    status = .isComplete
                    break reading
                }
                let source = window + Int(truncatingIfNeeded: entry &>> 16)
                let target = window + position
                Self.copyPiece(source, to: target)
                if length > Self.pieceSize { Self.copyRest(of: length, source, to: target) }
                // The string before and its own first index, which is only now there.
                if code == limit {
                    target.storeBytes(of: source.load(as: UInt8.self), toByteOffset: length &- 1, as: UInt8.self)
                }
                if limit < Self.entryCount {
                    limit &+= 1
                    entries[limit] =
                        UInt64(truncatingIfNeeded: position) &<< 16 | UInt64(truncatingIfNeeded: length &+ 1)
                    if limit > Int(truncatingIfNeeded: mask) {
                        if codeSize < Self.maximumCodeSize {
                            codeSize &+= 1
                            mask = mask &<< 1 | 1
                        } else {
                            self.tableEnd = position &+ length
                            threshold = min(threshold, self.tableEnd &+ Self.portion)
                        }
                    }
                }
                position &+= length
                if position >= threshold {
                    (self.limit, self.position) = (limit, position)
                    self.flush(to: &writer)
                    position = self.position
                    guard writer.remaining > 0 else {
                        status = .isComplete
                        break reading
                    }
                    threshold = self.threshold(writer)
                    guard position < threshold else {
                        status = .isDamaged
                        break reading
                    }
                }
            } while bitCount >= codeSize
        }

        (self.bits, self.bitCount) = (bits, bitCount)
        (self.codeSize, self.limit, self.position) = (codeSize, limit, position)
        return status
    }

    /// Writes what was collected as pixels, and begins a table at the start of the window.
    private mutating func clearTable(writer: inout GIFRowWriter) {
        self.flush(to: &writer)
        self.limit = self.clearCode + 1
        self.codeSize = self.clearCode.trailingZeroBitCount + 1
        (self.position, self.pendingStart) = (256, 256)
    }

    @inline(__always)
    private static func copyPiece(_ source: UnsafeMutableRawPointer, to target: UnsafeMutableRawPointer) {
        let piece = source.loadUnaligned(as: SIMD16<UInt8>.self)
        target.storeBytes(of: piece, as: SIMD16<UInt8>.self)
    }

    /// Copies what is left of a string behind its first piece.
    @inline(__always)
    private static func copyRest(
        of length: Int,
        _ source: UnsafeMutableRawPointer,
        to target: UnsafeMutableRawPointer
    ) {
        var offset = Self.pieceSize
        while offset < length {
            self.copyPiece(source + offset, to: target + offset)
            offset &+= Self.pieceSize
        }
    }
}
