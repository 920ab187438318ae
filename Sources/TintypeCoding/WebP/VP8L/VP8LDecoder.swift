/// Decodes a VP8L picture row by row, from bytes that may still be arriving.
///
/// libwebp decodes all rows that its bytes suffice for in one call, and a flat picture has none but a few bytes; it also
/// keeps more memory for prefix codes than for pixels if a file asks for that. Here a caller takes one row after the other.
/// Holds the coded pixels, as any may refer to all before it. Source: RFC 9649, section 3.
struct VP8LDecoder: ~Copyable {
    /// What comes before the pixels, and the pixels.
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
    /// Where the bits go on that were not read yet.
    private var bitOffset = 0
    /// The next row that is given out.
    private(set) var row = 0
    private var line: UnsafeMutablePointer<UInt32>

    /// Prepares to decode a picture whose size is known.
    init(width: Int, height: Int) {
        self.width = width
        self.height = height
        self.line = .allocate(capacity: width)
    }

    deinit {
        self.line.deallocate()
    }

    /// Writes the next row as bytes of red, green, blue, and alpha where there are four channels.
    ///
    /// - Parameters:
    ///   - target: Has room for a row.
    ///   - hasAlpha: Whether the target has four channels.
    ///   - isOpaque: Whether alpha is 255, whatever the stream says.
    ///   - bytes: The stream's chunk body from its first byte on, as far as it is there.
    ///   - work: Counts pixels and bytes.
    /// - Throws: `VP8LError`, `CodingError.Code.tooMuchWork`, `CancellationError`.
    mutating func readRow(
        to target: UnsafeMutableRawPointer,
        hasAlpha: Bool,
        isOpaque: Bool,
        from bytes: UnsafeRawBufferPointer,
        work: DecodeWork
    ) throws {
        let before = self.bitOffset / 8
        var bits = VP8LBitReader(bytes, at: self.bitOffset)
        let content = try self.content ?? self.readContent(&bits, work: work)
        if self.content == nil {
            self.content = content
            self.bitOffset = bits.bitOffset
        }
        try work.count(self.width)
        let row = self.row
        let codedWidth = content.pixels.width
        if content.pixels.count < (row + 1) * codedWidth {
            defer { self.bitOffset = bits.bitOffset }
            try content.pixels.decode(toRow: row, from: &bits)
        }
        self.line.update(from: content.pixels.start + row * codedWidth, count: codedWidth)
        for index in content.transforms.indices.reversed() { content.transforms[index].undo(self.line, row: row) }
        Self.write(self.line, self.width, to: target, hasAlpha: hasAlpha, isOpaque: isOpaque)
        self.row += 1
        try work.count(bytes: self.bitOffset / 8 - before)
    }

    private static func write(
        _ pixels: UnsafeMutablePointer<UInt32>,
        _ count: Int,
        to target: UnsafeMutableRawPointer,
        hasAlpha: Bool,
        isOpaque: Bool
    ) {
        if hasAlpha {
            let alpha: UInt32 = isOpaque ? 0xFF00_0000 : 0
            let target = target.assumingMemoryBound(to: UInt32.self)
            for column in 0..<count {
                let pixel = pixels[column]
                target[column] = (pixel & 0xFF00_FF00 | pixel >> 16 & 0xFF | (pixel & 0xFF) << 16 | alpha).littleEndian
            }
            return
        }
        // A pixel is stored as four bytes, of which the next one overwrites the last.
        for column in 0..<count - 1 {
            let pixel = pixels[column].byteSwapped >> 8
            target.storeBytes(of: pixel.littleEndian, toByteOffset: column * 3, as: UInt32.self)
        }
        let last = pixels[count - 1]
        for (offset, shift) in [(0, 16), (1, 8), (2, 0)] as [(Int, UInt32)] {
            let sample = UInt8(truncatingIfNeeded: last >> shift)
            target.storeBytes(of: sample, toByteOffset: (count - 1) * 3 + offset, as: UInt8.self)
        }
    }

    // MARK: What comes before the pixels

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

    /// The transforms, and the width of the coded picture.
    private func readTransforms(
        _ bits: inout VP8LBitReader,
        work: DecodeWork
    ) throws -> (transforms: [VP8LTransform], width: Int) {
        var transforms: [VP8LTransform] = []
        var width = self.width
        while bits.read(1) == 1 {
            let transform = try self.readTransform(&bits, width: width, work: work)
            guard !transforms.contains(where: { $0.kind == transform.kind }) else { throw VP8LError.damaged }
            if transform.kind == .palette { width = (width + 1 << transform.sizeBits - 1) >> transform.sizeBits }
            transforms.append(transform)
        }
        if bits.isExhausted { throw VP8LError.needsBytes }
        return (transforms, width)
    }

    /// The bytes of memory that decoding takes, besides those of the output, for a stream of which the start is there.
    ///
    /// Tables of prefix codes count with all that a stream of `byteCount` bytes can make: how many there are is not
    /// known before they are read.
    static func byteCount(width: Int, height: Int, of bytes: UnsafeRawBufferPointer, byteCount: Int) -> Int {
        let tables = VP8LPrefixCodes.byteCount(pixelCount: width * height, streamByteCount: byteCount)
        return tables + self.pixelByteCount(width: width, height: height, of: bytes)
    }

    private static func pixelByteCount(width: Int, height: Int, of bytes: UnsafeRawBufferPointer) -> Int {
        var bits = VP8LBitReader(bytes, at: self.headerByteCount * 8)
        func pixels(width: Int) -> Int { width * height * 4 + width * 8 }
        func tiles(_ sizeBits: Int) -> Int { self.tiles(width, sizeBits) * self.tiles(height, sizeBits) * 4 }
        guard bits.read(1) == 1 else { return pixels(width: width) }
        let type = bits.read(2)
        let smallest = 2
        switch type {
        // The other transform that has tiles has as many, where there is one.
        case 0, 1:
            let sizeBits = bits.read(3) + smallest
            return pixels(width: width) + tiles(bits.isExhausted ? smallest : sizeBits) * 2
        // What follows is coded; of the two that have tiles, one is taken for the worst.
        case 2: return pixels(width: width) + tiles(smallest)
        default:
            // Indices into few colours lie together in one coded pixel.
            let size = bits.read(8) + 1
            let sizeBits = bits.isExhausted ? 0 : VP8LTransform.sizeBits(ofColors: size)
            let codedWidth = self.tiles(width, sizeBits)
            return pixels(width: codedWidth) + self.tiles(codedWidth, smallest) * self.tiles(height, smallest) * 4
        }
    }

    /// The number of tiles of a side of `1 << sizeBits` pixels along `length` pixels.
    private static func tiles(_ length: Int, _ sizeBits: Int) -> Int { (length + (1 << sizeBits) - 1) >> sizeBits }

    /// The bytes before the first transform: a signature, both sides, whether there is alpha, and a version.
    static let headerByteCount = 5

    /// The groups of prefix codes that libwebp keeps of a stream without a header, as an alpha channel has it, and the
    /// bits of its cache.
    ///
    /// Reads what comes before the codes.
    ///
    /// - Throws: `VP8LError`, `CodingError.Code.tooMuchWork`, `CancellationError`.
    func groups(ofHeaderless bytes: UnsafeRawBufferPointer, work: DecodeWork) throws -> (count: Int, cacheBits: Int) {
        var bits = VP8LBitReader(bytes, at: 0)
        let (_, width) = try self.readTransforms(&bits, work: work)
        let start = try Self.readImageStart(&bits, width: width, height: self.height, isMain: true, work: work)
        let count = Int(start.tiles.max() ?? 0) + 1
        // Of few groups all are kept, of many those that a tile names.
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
            let sizeBits = bits.read(3) + 2
            if bits.isExhausted { throw VP8LError.needsBytes }
            let tiles = try Self.readWhole(
                &bits,
                width: (width + 1 << sizeBits - 1) >> sizeBits,
                height: (self.height + 1 << sizeBits - 1) >> sizeBits,
                work: work
            )
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
        // Each colour is a difference from the one before, channel by channel.
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

    /// An image that is a part of the head.
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

    /// The codes of an image, and room for its pixels.
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
        var places: [UInt16?] = Array(repeating: tiles.isEmpty ? 0 : nil, count: Int(tiles.max() ?? 0) + 1)
        var next: UInt16 = 0
        for tile in tiles { places[Int(tile)] = 0 }
        for group in places.indices {
            try work.count(Self.unitsPerGroup + (cacheBits > 0 ? (1 << cacheBits) / 4 : 0))
            let isKept = places[group] != nil
            try codes.readGroup(cacheBits: cacheBits, isKept: isKept, from: &bits)
            if isKept {
                places[group] = next
                next &+= 1
            }
        }
        for index in tiles.indices { tiles[index] = places[Int(tiles[index])] ?? 0 }
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

    /// What comes before the codes of an image: the size of its cache, and which group each tile has.
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
            tileBits = bits.read(3) + 2
            if bits.isExhausted { throw VP8LError.needsBytes }
            let tileWidth = (width + 1 << tileBits - 1) >> tileBits
            let tileHeight = (height + 1 << tileBits - 1) >> tileBits
            tiles = try self.readWhole(&bits, width: tileWidth, height: tileHeight, work: work)
                .map { UInt16(truncatingIfNeeded: $0 >> 8) }
        }
        if bits.isExhausted { throw VP8LError.needsBytes }
        return (cacheBits, tiles, tileBits)
    }

    /// The largest cache of colours, as a power of two.
    static let maximumCacheBits = 11

    /// The work of reading the prefix codes of one group, besides those of a cache.
    private static let unitsPerGroup = 400
}
