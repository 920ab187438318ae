// SPDX-License-Identifier: Apache-2.0

#if WebP
import CTintypeVP8L
import TintypeImage

/// Decodes a VP8L image row by row, while its bytes arrive.
///
/// libwebp decodes all rows that its bytes suffice for in one call, and a flat image may need only a few bytes. It also
/// keeps more memory for prefix codes than for pixels if a file asks for that. This decoder yields one row at a time.
/// It holds all coded pixels, because any pixel may refer to all earlier ones. Source: RFC 9649, section 3.
struct VP8LDecoder: ~Copyable {
    /// The data before the pixels, and the pixels.
    private final class Content {
        var transforms: [VP8LTransform]
        var pixels: VP8LPixels

        init(transforms: [VP8LTransform], pixels: consuming VP8LPixels) {
            self.transforms = transforms
            self.pixels = pixels
        }
    }

    let width: Int
    let height: Int
    private var content: Content?
    /// The offset of the next bit to read.
    private var bitOffset = 0
    /// The bytes that are already counted as work.
    private var countedByteCount = 0
    /// The next row to return.
    private(set) var row = 0
    private var line: UnsafeMutablePointer<UInt32>

    /// Creates a decoder for an image of a known size.
    init(width: Int, height: Int) {
        self.width = width
        self.height = height
        self.line = .allocate(capacity: width)
    }

    deinit {
        self.line.deallocate()
    }

    /// Writes the next row as bytes of red, green, blue and, if there are four channels, alpha.
    ///
    /// - Parameters:
    ///   - target: Memory for a row.
    ///   - hasAlpha: Whether the target has four channels.
    ///   - isOpaque: Whether alpha is 255, whatever the stream says.
    ///   - bytes: The arrived part of the stream's chunk body, from its first byte on.
    ///   - work: The counter of pixels and bytes.
    /// - Throws: `VP8LError`, `CodingError.Code.tooMuchWork`, `CancellationError`.
    mutating func readRow(
        to target: UnsafeMutableRawPointer,
        hasAlpha: Bool,
        isOpaque: Bool,
        from bytes: UnsafeRawBufferPointer,
        work: DecodeWork
    ) throws {
        var bits = VP8LBitReader(bytes, at: self.bitOffset)
        let content = try self.content ?? self.readContent(&bits, work: work)
        if self.content == nil {
            self.content = content
            self.bitOffset = bits.bitOffset
        }
        let row = self.row
        let codedWidth = content.pixels.width
        if content.pixels.count < (row + 1) * codedWidth {
            defer { self.bitOffset = bits.bitOffset }
            try content.pixels.decode(toRow: row, from: &bits)
        }
        // Count once, however often the row was begun without enough bytes.
        try work.count(self.width)
        try work.count(bytes: self.bitOffset / 8 - self.countedByteCount)
        self.countedByteCount = self.bitOffset / 8
        self.line.update(from: content.pixels.start + row * codedWidth, count: codedWidth)
        for index in content.transforms.indices.reversed() { content.transforms[index].undo(self.line, row: row) }
        cvp8l_write(self.line, self.width, target.assumingMemoryBound(to: UInt8.self), hasAlpha, isOpaque)
        self.row += 1
    }

    // MARK: Data before the pixels

    private func readContent(_ bits: inout VP8LBitReader, work: DecodeWork) throws -> Content {
        let isRight = bits.read(8) == 0x2F && bits.read(14) == self.width - 1 && bits.read(14) == self.height - 1
        _ = bits.read(1)
        let version = bits.read(3)
        if bits.isExhausted { throw VP8LError.needsBytes }
        guard isRight, version == 0 else { throw VP8LError.damaged }
        let (transforms, width) = try self.readTransforms(&bits, work: work)
        let pixels = try Self.readImage(&bits, width: width, height: self.height, isMain: true, work: work)
        return Content(transforms: transforms, pixels: pixels)
    }

    /// Returns the transforms, and the width of the coded image.
    private func readTransforms(
        _ bits: inout VP8LBitReader,
        work: DecodeWork
    ) throws -> (transforms: [VP8LTransform], width: Int) {
        var transforms: [VP8LTransform] = []
        var width = self.width
        while bits.read(1) == 1 {
            let transform = try self.readTransform(&bits, width: width, work: work)
            guard !transforms.contains(where: { $0.kind == transform.kind }) else { throw VP8LError.damaged }
            if transform.kind == .palette { width = Self.tiles(width, transform.sizeBits) }
            transforms.append(transform)
        }
        if bits.isExhausted { throw VP8LError.needsBytes }
        return (transforms, width)
    }

    /// Returns the memory in bytes that decoding takes, without the output, from the start of a stream.
    ///
    /// For groups of prefix codes and their tables, it returns the most that a stream of `byteCount` bytes can define.
    /// Their real number is not known before they are read.
    static func byteCount(width: Int, height: Int, of bytes: UnsafeRawBufferPointer, byteCount: Int) -> Int {
        let tables = VP8LPrefixCodes.byteCount(
            pixelCount: width * height,
            tileCount: self.tiles(width, self.smallestSizeBits) * self.tiles(height, self.smallestSizeBits),
            streamByteCount: byteCount
        )
        return tables + self.pixelByteCount(width: width, height: height, of: bytes)
    }

    private static func pixelByteCount(width: Int, height: Int, of bytes: UnsafeRawBufferPointer) -> Int {
        var bits = VP8LBitReader(bytes, at: self.headerByteCount * 8)
        let smallest = self.smallestSizeBits
        func tiles(_ sizeBits: Int) -> Int { self.tiles(width, sizeBits) * self.tiles(height, sizeBits) * 4 }
        // The tiles of the main image take two bytes each for the number of their group of codes.
        func pixels(width: Int) -> Int {
            width * height * 4 + width * 8 + self.tiles(width, smallest) * self.tiles(height, smallest) * 2
        }
        guard bits.read(1) == 1 else { return pixels(width: width) }
        switch bits.read(2) {
        // The other transform with tiles has as many, if it is present.
        case 0, 1:
            let sizeBits = bits.read(3) + smallest
            return pixels(width: width) + tiles(bits.isExhausted ? smallest : sizeBits) * 2
        // The next transforms are coded; assume one with the smallest tiles, the worst case of the two that have tiles.
        case 2: return pixels(width: width) + tiles(smallest)
        default:
            // One coded pixel holds several indices into few colours.
            let size = bits.read(8) + 1
            let sizeBits = bits.isExhausted ? 0 : VP8LTransform.sizeBits(ofColors: size)
            let codedWidth = self.tiles(width, sizeBits)
            return pixels(width: codedWidth) + self.tiles(codedWidth, smallest) * self.tiles(height, smallest) * 4
        }
    }

    /// The side of the smallest tiles, as a power of two.
    private static let smallestSizeBits = 2

    /// Returns the number of tiles with a side of `1 << sizeBits` pixels along `length` pixels.
    private static func tiles(_ length: Int, _ sizeBits: Int) -> Int { (length + (1 << sizeBits) - 1) >> sizeBits }

    /// The bytes before the first transform: a signature, both sides, whether there is alpha, and a version.
    static let headerByteCount = 5

    /// Returns the groups of prefix codes that libwebp keeps, and the bits of its cache, for a stream without a header.
    ///
    /// An alpha channel is such a stream. The method reads the data before the codes.
    ///
    /// - Throws: `VP8LError`, `CodingError.Code.tooMuchWork`, `CancellationError`.
    func groups(ofHeaderless bytes: UnsafeRawBufferPointer, work: DecodeWork) throws -> (count: Int, cacheBits: Int) {
        var bits = VP8LBitReader(bytes, at: 0)
        let (_, width) = try self.readTransforms(&bits, work: work)
        let start = try Self.readImageStart(&bits, width: width, height: self.height, isMain: true, work: work)
        let count = Int(start.tiles.max() ?? 0) + 1
        // libwebp keeps all groups if they are few, otherwise the ones that a tile names.
        guard count > 1_000 || count > width * self.height else { return (count, start.cacheBits) }
        return (Set(start.tiles).count, start.cacheBits)
    }

    private func readTransform(
        _ bits: inout VP8LBitReader,
        width: Int,
        work: DecodeWork
    ) throws -> VP8LTransform {
        let type = bits.read(2)
        switch type {
        case 0, 1:
            let sizeBits = bits.read(3) + Self.smallestSizeBits
            if bits.isExhausted { throw VP8LError.needsBytes }
            let (across, down) = (Self.tiles(width, sizeBits), Self.tiles(self.height, sizeBits))
            let tiles = try Self.readWhole(&bits, width: across, height: down, work: work)
            return VP8LTransform(kind: type == 0 ? .predictor : .color, width: width, sizeBits: sizeBits, data: tiles)
        case 2: return VP8LTransform(kind: .subtractGreen, width: width)
        default: return try Self.readPalette(&bits, width: width, work: work)
        }
    }

    private static func readPalette(
        _ bits: inout VP8LBitReader,
        width: Int,
        work: DecodeWork
    ) throws -> VP8LTransform {
        let size = bits.read(8) + 1
        let sizeBits = VP8LTransform.sizeBits(ofColors: size)
        var colors = try self.readWhole(&bits, width: size, height: 1, work: work)
        // Each colour is stored as the difference from the one before, channel by channel.
        for index in 1..<max(1, size) {
            let (first, second) = (colors[index - 1], colors[index])
            let alphaAndGreen = (first & 0xFF00_FF00) &+ (second & 0xFF00_FF00)
            let redAndBlue = (first & 0x00FF_00FF) &+ (second & 0x00FF_00FF)
            colors[index] = alphaAndGreen & 0xFF00_FF00 | redAndBlue & 0x00FF_00FF
        }
        // An index beyond the last colour is transparent black.
        colors += Array(repeating: 0, count: max(0, 1 << (8 >> sizeBits) - size))
        return VP8LTransform(kind: .palette, width: width, sizeBits: sizeBits, data: colors)
    }

    /// Returns an image that is part of the stream's head.
    private static func readWhole(
        _ bits: inout VP8LBitReader,
        width: Int,
        height: Int,
        work: DecodeWork
    ) throws -> [UInt32] {
        var pixels = try self.readImage(&bits, width: width, height: height, isMain: false, work: work)
        for row in 0..<height {
            try work.count(width)
            try pixels.decode(toRow: row, from: &bits)
        }
        return Array(UnsafeBufferPointer(start: pixels.start, count: width * height))
    }

    /// Reads the codes of an image, and allocates its pixels.
    private static func readImage(
        _ bits: inout VP8LBitReader,
        width: Int,
        height: Int,
        isMain: Bool,
        work: DecodeWork
    ) throws -> VP8LPixels {
        var (cacheBits, tiles, tileBits) = try self.readImageStart(
            &bits,
            width: width,
            height: height,
            isMain: isMain,
            work: work
        )
        var codes = VP8LPrefixCodes(pixelCount: width * height)
        // Groups that no tile names are read, but not kept.
        var isNamed = Array(repeating: tiles.isEmpty, count: Int(tiles.max() ?? 0) + 1)
        for tile in tiles { isNamed[Int(tile)] = true }
        codes.reserveGroups(isNamed.count { $0 })
        // Grows with the groups that are read, because a stream may name many more.
        var places: [UInt16] = []
        for isKept in isNamed {
            try work.count(Self.unitsPerGroup + (cacheBits > 0 ? (1 << cacheBits) / 4 : 0))
            places.append(UInt16(truncatingIfNeeded: codes.groups.count))
            try codes.readGroup(cacheBits: cacheBits, isKept: isKept, from: &bits)
        }
        for index in tiles.indices { tiles[index] = places[Int(tiles[index])] }
        guard
            let pixels = VP8LPixels(
                width: width,
                height: height,
                codes: codes,
                tiles: tiles,
                tileBits: tileBits,
                cacheBits: cacheBits
            )
        else { throw VP8LError.noMemory }
        return pixels
    }

    /// Reads the data before the codes of an image: the size of its cache, and the group of each tile.
    private static func readImageStart(
        _ bits: inout VP8LBitReader,
        width: Int,
        height: Int,
        isMain: Bool,
        work: DecodeWork
    ) throws -> (cacheBits: Int, tiles: [UInt16], tileBits: Int) {
        var cacheBits = 0
        if bits.read(1) == 1 {
            cacheBits = bits.read(4)
            let isRight = 1...Self.maximumCacheBits ~= cacheBits
            guard isRight else { throw bits.isExhausted ? VP8LError.needsBytes : .damaged }
        }
        var tiles: [UInt16] = []
        var tileBits = 0
        if isMain, bits.read(1) == 1 {
            tileBits = bits.read(3) + self.smallestSizeBits
            if bits.isExhausted { throw VP8LError.needsBytes }
            let (across, down) = (self.tiles(width, tileBits), self.tiles(height, tileBits))
            tiles = try self.readWhole(&bits, width: across, height: down, work: work)
                .map { UInt16(truncatingIfNeeded: $0 >> 8) }
        }
        if bits.isExhausted { throw VP8LError.needsBytes }
        return (cacheBits, tiles, tileBits)
    }

    /// The largest cache of colours, as a power of two.
    static let maximumCacheBits = 11

    /// The work of reading the prefix codes of one group, without the codes of a cache.
    private static let unitsPerGroup = 400
}

/// The reasons why a VP8L stream cannot be read further.
enum VP8LError: Error {
    /// The end of the stream is missing.
    case needsBytes
    /// The stream breaks the format.
    case damaged
    /// The prefix codes would take more memory than the pixels.
    case tooManyCodes
    /// The system refuses memory for the pixels.
    case noMemory

    /// Returns whether an image with this number of complete rows cannot be shown even if truncation is allowed.
    func isFatal(afterRows rowCount: Int) -> Bool {
        switch self {
        case .needsBytes: false
        case .damaged: rowCount == 0
        case .tooManyCodes, .noMemory: true
        }
    }
}

extension CodingError {
    /// Creates the error that the caller sees.
    init(_ error: VP8LError) {
        self =
            switch error {
            case .needsBytes: .truncated(.webp)
            case .damaged: .corrupt(.webp, "its bit stream breaks the format")
            case .noMemory: .outOfMemory(.webp)
            case .tooManyCodes:
                CodingError(
                    code: .unsupportedFeature,
                    message: "The webp data has prefix codes that take more memory than its pixels; encode it again.",
                    format: .webp
                )
            }
    }
}

/// Reads the bits of a VP8L stream, the lowest bit of each byte first.
///
/// It reads zeros behind the last byte; ``isExhausted`` says whether that happened.
struct VP8LBitReader {
    let bytes: UnsafeRawBufferPointer
    /// The offset of the next byte that is not in `bits` yet.
    private(set) var offset: Int
    /// Bits that were not read yet, the next one lowest; there may be others above the counted ones.
    private(set) var bits: UInt64 = 0
    /// The number of valid bits in `bits`; negative if too many were read.
    private(set) var bitCount = 0

    init(_ bytes: UnsafeRawBufferPointer, at bitOffset: Int) {
        self.bytes = bytes
        self.offset = bitOffset / 8
        self.refill()
        self.skip(bitOffset % 8)
    }

    /// The number of bits read since the first byte.
    var bitOffset: Int { self.offset * 8 - self.bitCount }

    /// Whether more bits were read than available.
    var isExhausted: Bool { self.bitCount < 0 }

    /// Makes 56 bits readable, or as many as are available.
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
        // Clear the bits that a fast refill left above the counted ones; they would be read twice.
        self.bits &= UInt64(1) &<< UInt64(self.bitCount) &- 1
        while self.bitCount <= 48, self.offset < self.bytes.count {
            self.bits |= UInt64(self.bytes[self.offset]) &<< UInt64(self.bitCount)
            self.offset += 1
            self.bitCount += 8
        }
    }

    /// Skips bits, at most 56 after a refill.
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
#endif
