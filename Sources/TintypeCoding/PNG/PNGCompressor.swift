// SPDX-License-Identifier: Apache-2.0

import CTintypeDeflate
import CTintypePNGDeflate
import CTintypePNGFilters
import FoundationEssentials
import TintypeImage

/// Writes still images.
///
/// Source: W3C PNG, third edition. It chooses the smallest colour type that keeps every pixel.
struct PNGCompressor {
    let options: EncodeOptions

    /// Returns the file of an upright image.
    ///
    /// - Throws: `CodingError.Code.encodingFailed` if the file exceeds the byte limit, `CancellationError`.
    func compress(_ pixels: PixelBuffer) throws -> Data {
        try self.options.smallestPNG { try PNGCompressor(options: $0).compressWhole(pixels) }
    }

    private func compressWhole(_ pixels: PixelBuffer) throws -> Data {
        let format = try PNGSampleFormat([pixels], format: pixels.format)
        var writer = PNGWriter()
        writer.append(.imageHeader, format.header(width: pixels.width, height: pixels.height))
        try writer.append(self.options.metadata)
        format.appendPalette(to: &writer)
        let area = PixelArea(rows: 0..<pixels.height, columns: 0..<pixels.width)
        try writer.append(.pixels) { try self.compress(area, of: pixels, format, to: &$0) }
        writer.append(.end)
        return writer.data
    }

    /// Filters and compresses the scanlines of a part of an image.
    ///
    /// It takes the memory of a few scanlines and of ``PNGDeflater``.
    func compress(_ area: PixelArea, of pixels: PixelBuffer, _ format: PNGSampleFormat, to data: inout Data) throws {
        var lines = PNGLineWriter(area, of: pixels, format)
        var deflater = try PNGDeflater(longestLine: lines.byteCount)
        let filter = try self.filter(&lines, &deflater)
        deflater.start(level: self.options.pngLevel, lineByteCount: lines.byteCount)
        for row in area.rows {
            try deflater.append(lines.byteCount, to: &data) { lines.write(row, filter, to: $0) }
        }
        try deflater.finish(to: &data)
    }

    /// Returns the filter that makes a sample of the scanlines smallest.
    private func filter(_ lines: inout PNGLineWriter, _ deflater: inout PNGDeflater) throws -> PNGLineWriter.Filter {
        switch self.options.pngFilter {
        case .none: return .none
        case .all: return .best
        case .automatic: break
        }
        guard lines.format.suitsFilters, self.options.pngLevel > 0 else { return .none }
        var smallest = (filter: PNGLineWriter.Filter.best, byteCount: Int.max)
        for filter in [PNGLineWriter.Filter.best, .up, .sub, .none] {
            var sample = Data()
            // ISA-L finds other matches than the higher levels, which find similar ones.
            deflater.start(level: min(self.options.pngLevel, 2), lineByteCount: lines.byteCount)
            for band in lines.sample {
                lines.skip(to: band.lowerBound)
                for row in band {
                    try deflater.append(lines.byteCount, to: &sample) { lines.write(row, filter, to: $0) }
                }
            }
            try deflater.finish(to: &sample)
            if sample.count < smallest.byteCount { smallest = (filter, sample.count) }
        }
        return smallest.filter
    }
}

extension EncodeOptions {
    /// Returns the file that `compress` makes with these options or, if that is too large, with options of more effort.
    ///
    /// Only more effort makes a PNG smaller, because it keeps every pixel. If no file fits, returns the smallest one,
    /// unless the limit is required.
    ///
    /// - Throws: `CodingError.Code.encodingFailed` if no file fits a required limit, any error of `compress`.
    func smallestPNG(_ compress: (EncodeOptions) throws -> Data) throws -> Data {
        guard let limit = self.maximumByteCount else { return try compress(self) }
        var attempts = [self]
        for filter in [PNGFilter.automatic, .all, .none] {
            var options = self
            options.pngLevel = 9
            options.pngFilter = filter
            if options != self { attempts.append(options) }
        }
        var smallestCount = Int.max
        var smallest: Data?
        for options in attempts {
            let data = try compress(options)
            if data.count <= limit { return data }
            guard data.count < smallestCount else { continue }
            smallestCount = data.count
            smallest = self.requiresMaximumByteCount ? nil : data
        }
        if let smallest { return smallest }
        throw CodingError.notEncoded(
            .png,
            "As PNG, which keeps every pixel, the image takes \(smallestCount) bytes of \(limit); make it smaller "
                + "or choose a lossy format."
        )
    }
}

/// Assembles the chunks of a PNG.
struct PNGWriter {
    /// The file so far.
    private(set) var data = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])

    /// Appends a chunk whose content consists of `pieces`.
    mutating func append(_ kind: PNGChunk.Kind, _ pieces: Data...) {
        let start = self.data.count + 4
        self.data.append(bigEndian: UInt32(pieces.reduce(0) { $0 + $1.count }))
        self.data.append(bigEndian: kind.rawValue)
        for piece in pieces { self.data.append(piece) }
        let checksum = self.data.withUnsafeBytes { bytes in
            libdeflate_crc32(0, bytes.baseAddress.map { $0 + start }, bytes.count - start)
        }
        self.data.append(bigEndian: checksum)
    }

    /// Appends a chunk whose content `body` appends to the data.
    ///
    /// - Throws: `CodingError` for more bytes than a chunk can have, any error of `body`.
    mutating func append(_ kind: PNGChunk.Kind, _ body: (inout Data) throws -> Void) throws {
        let start = self.data.count
        self.data.append(bigEndian: UInt32(0))
        self.data.append(bigEndian: kind.rawValue)
        try body(&self.data)
        let count = self.data.count - start - 8
        guard count <= PNGChunk.maximumLength else {
            throw CodingError.notEncoded(.png, "The image takes over 2 GB as PNG; make it smaller.")
        }
        let checksum = self.data.withUnsafeMutableBytes { bytes in
            bytes.storeBytes(of: UInt32(count).bigEndian, toByteOffset: start, as: UInt32.self)
            return libdeflate_crc32(0, bytes.baseAddress.map { $0 + start + 4 }, count + 4)
        }
        self.data.append(bigEndian: checksum)
    }

    /// Appends the metadata blocks that are present.
    mutating func append(_ metadata: EncodeOptions.Metadata) throws {
        if let profile = metadata.colorProfile {
            // The format requires a name; the profile contains its real one.
            self.append(.colorProfile, Data("ICC profile\0\0".utf8), try PNGDeflater.deflated(profile))
        }
        if let exif = metadata.exif { self.append(.exif, exif) }
        if let xmp = metadata.xmp {
            // Keyword, not compressed, no language, no translated keyword (section 11.3.3.4).
            self.append(.text, Data("XML:com.adobe.xmp\0\0\0\0\0".utf8), xmp)
        }
    }
}

extension Data {
    /// Appends a number, highest byte first.
    mutating func append<Number: FixedWidthInteger>(bigEndian number: Number) {
        Swift.withUnsafeBytes(of: number.bigEndian) { self.append(contentsOf: $0) }
    }
}

/// Compresses bytes as a zlib stream, strip by strip.
///
/// Source: RFC 1950. `CTintypePNGDeflate` makes the deflate stream within.
struct PNGDeflater: ~Copyable {
    private static let stripByteCount = cpngdeflate_strip_limit
    private static let windowByteCount = cpngdeflate_window
    private static let outputByteCount = cpngdeflate_output_limit

    private let longestLine: Int
    private let stream: OpaquePointer
    /// The window of earlier bytes, followed by the strip so far.
    private let bytes: UnsafeMutableRawBufferPointer
    private let output: UnsafeMutablePointer<UInt8>
    /// Checks for cancellation at each strip.
    private let work = DecodeWork(DecodingLimits(maximumWork: .max), format: .png)
    private var compressedCount = 0
    private var count = 0
    private var checksum: UInt32 = 1
    private var hasBegun = false

    /// Allocates a compressor.
    ///
    /// - Parameter longestLine: The most bytes to append at once.
    /// - Throws: `CodingError` if memory runs out.
    init(longestLine: Int) throws(CodingError) {
        guard MemoryRoom.has(Self.byteCount(longestLine: longestLine)), let stream = cpngdeflate_begin() else {
            throw .outOfMemory(.png)
        }
        self.longestLine = longestLine
        self.stream = stream
        self.bytes = .allocate(byteCount: Self.capacity(longestLine: longestLine), alignment: 16)
        self.output = .allocate(capacity: Self.outputByteCount)
    }

    deinit {
        cpngdeflate_end(self.stream)
        self.bytes.deallocate()
        self.output.deallocate()
    }

    /// Returns the memory in bytes that a stream takes.
    static func byteCount(longestLine: Int) -> Int {
        Self.capacity(longestLine: longestLine) + Self.outputByteCount + cpngdeflate_size()
    }

    private static func capacity(longestLine: Int) -> Int {
        Self.windowByteCount + Self.stripByteCount + longestLine
    }

    /// Starts a stream.
    ///
    /// - Parameters:
    ///   - level: The effort; values outside 0 to 9 are clamped.
    ///   - lineByteCount: The bytes of a scanline with its filter byte; 0 for bytes that are not scanlines.
    mutating func start(level: Int, lineByteCount: Int) {
        cpngdeflate_start(self.stream, CInt(max(0, min(level, 9))), lineByteCount)
        self.compressedCount = 0
        self.count = 0
        self.checksum = 1
        self.hasBegun = false
    }

    /// Compresses `count` bytes that `write` writes.
    ///
    /// - Throws: `CancellationError`.
    mutating func append(
        _ count: Int,
        to data: inout Data,
        _ write: (UnsafeMutableRawBufferPointer) -> Void
    ) throws {
        write(UnsafeMutableRawBufferPointer(rebasing: self.bytes[self.count..<self.count + count]))
        self.count += count
        while self.count - self.compressedCount >= Self.stripByteCount {
            try self.compress(Self.stripByteCount, isLast: false, to: &data)
        }
        // Move the window to the front.
        let start = self.compressedCount - Self.windowByteCount
        guard start > 0, self.bytes.count - self.count < self.longestLine else { return }
        let rest = UnsafeRawBufferPointer(rebasing: self.bytes[start..<self.count])
        self.bytes.copyMemory(from: rest)
        self.compressedCount -= start
        self.count -= start
    }

    /// Compresses the rest and ends the stream.
    ///
    /// - Throws: `CancellationError`.
    mutating func finish(to data: inout Data) throws {
        try self.compress(self.count - self.compressedCount, isLast: true, to: &data)
        data.append(bigEndian: self.checksum)
    }

    private mutating func compress(_ count: Int, isLast: Bool, to data: inout Data) throws {
        try self.work.look()
        if !self.hasBegun {
            // Deflate with a window of 32 kB, without a dictionary.
            data.append(contentsOf: [0x78, 0x9C])
            self.hasBegun = true
        }
        guard let bytes = self.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
        self.checksum = libdeflate_adler32(self.checksum, bytes + self.compressedCount, count)
        let written = cpngdeflate_add(self.stream, bytes, self.compressedCount, count, isLast, self.output)
        self.compressedCount += count
        data.append(self.output, count: written)
    }

    /// Returns the bytes as a zlib stream.
    static func deflated(_ bytes: Data) throws -> Data {
        var deflater = try PNGDeflater(longestLine: Self.stripByteCount)
        deflater.start(level: 9, lineByteCount: 0)
        var result = Data()
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Self.stripByteCount)
            try deflater.append(piece.count, to: &result) { $0.copyBytes(from: piece) }
            rest = rest.dropFirst(piece.count)
        }
        try deflater.finish(to: &result)
        return result
    }
}

/// Writes the filtered scanlines of a part of an image, from the top.
struct PNGLineWriter {
    /// How a scanline is filtered.
    enum Filter: CInt {
        case none
        case sub
        case up
        case average
        case paeth
        /// The filter whose output is nearest to zero (section 12.7).
        case best
    }

    /// The bytes of a filtered scanline, including its filter byte.
    let byteCount: Int
    let format: PNGSampleFormat
    private let area: PixelArea
    private let pixels: PixelBuffer
    private let bytesPerPixel: Int
    /// The line that is being written and the one above, before packing: each sample takes at least one byte.
    private var line: [UInt8]
    private var prior: [UInt8]
    /// The line as filtered by one filter, and by the best one so far.
    private var filtered: [UInt8]
    private var best: [UInt8]

    init(_ area: PixelArea, of pixels: PixelBuffer, _ format: PNGSampleFormat) {
        self.area = area
        self.pixels = pixels
        self.format = format
        self.byteCount = format.byteCount(ofLine: area.columns.count) + 1
        self.bytesPerPixel = max(1, format.bitDepth * format.colorType.channelCount / 8)
        self.line = Array(repeating: 0, count: max(self.byteCount - 1, area.columns.count))
        self.prior = self.line
        self.filtered = Array(repeating: 0, count: self.byteCount)
        self.best = self.filtered
    }

    /// Returns the memory in bytes that a writer takes.
    static func byteCount(lineByteCount: Int, width: Int) -> Int {
        2 * (max(lineByteCount, width) + lineByteCount + 1)
    }

    /// Prepares to write a row that does not follow the last one.
    mutating func skip(to row: Int) {
        if row > self.area.rows.lowerBound {
            self.read(row - 1)
        } else {
            self.line.withUnsafeMutableBytes { _ = $0.initializeMemory(as: UInt8.self, repeating: 0) }
        }
    }

    /// Writes the next row as a scanline; the first row has zeros above it.
    mutating func write(_ row: Int, _ filter: Filter, to target: UnsafeMutableRawBufferPointer) {
        if row == self.area.rows.lowerBound { self.skip(to: row) }
        swap(&self.line, &self.prior)
        self.read(row)
        guard filter == .best else {
            _ = self.apply(filter, to: target)
            return
        }
        var least = UInt64.max
        for filter in [Filter.up, .sub, .paeth, .average, .none] {
            var filtered: [UInt8] = []
            swap(&filtered, &self.filtered)
            let sum = filtered.withUnsafeMutableBytes { self.apply(filter, to: $0) }
            swap(&filtered, &self.filtered)
            guard sum < least else { continue }
            least = sum
            swap(&self.filtered, &self.best)
            if sum == 0 { break }
        }
        self.best.withUnsafeBytes { target.copyMemory(from: $0) }
    }

    private mutating func read(_ row: Int) {
        self.line.withUnsafeMutableBufferPointer { line in
            guard let base = line.baseAddress else { return }
            self.format.write(row: row, of: self.pixels, columns: self.area.columns, to: base)
        }
    }

    /// Filters the line, and returns the sum of the filtered bytes' distances from zero.
    private func apply(_ filter: Filter, to target: UnsafeMutableRawBufferPointer) -> UInt64 {
        self.line.withUnsafeBufferPointer { line in
            self.prior.withUnsafeBufferPointer { prior in
                guard
                    let target = target.baseAddress?.assumingMemoryBound(to: UInt8.self), let line = line.baseAddress,
                    let prior = prior.baseAddress
                else { return 0 }
                return cpngfilters_apply(
                    filter.rawValue,
                    target,
                    line,
                    prior,
                    self.byteCount - 1,
                    self.bytesPerPixel
                )
            }
        }
    }
}

extension PNGLineWriter {
    private static let bandHeight = 8
    private static let sampledByteCount = 32 << 10...1 << 20

    /// The sampled rows: a thirty-second of all rows, in bands from top to bottom.
    var sample: [Range<Int>] {
        let rows = self.area.rows
        let byteCount = min(
            max(rows.count * self.byteCount / 32, Self.sampledByteCount.lowerBound),
            Self.sampledByteCount.upperBound
        )
        let count = max(1, byteCount / self.byteCount / Self.bandHeight)
        guard count * Self.bandHeight < rows.count else { return [rows] }
        return (0..<count).map { index in
            let middle = rows.lowerBound + (2 * index + 1) * rows.count / (2 * count)
            let start = min(max(middle - Self.bandHeight / 2, rows.lowerBound), rows.upperBound - Self.bandHeight)
            return start..<start + Self.bandHeight
        }
    }
}
