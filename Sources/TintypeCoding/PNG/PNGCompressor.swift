import CDeflate
import CPNGFilters
import FoundationEssentials
import TintypeImage

/// Writes still pictures.
///
/// Source: W3C PNG, third edition. The colour type is the smallest that keeps every pixel; for
/// each scanline the filter is taken whose bytes are nearest to zero (section 12.7).
struct PNGCompressor {
    let options: EncodeOptions

    /// The file of an upright picture.
    ///
    /// - Throws: `CodingError.Code.encodingFailed` when it does not fit the limit of bytes; `CancellationError`.
    func compress(_ pixels: PixelBuffer) throws -> Data {
        try self.options.smallestPNG { try PNGCompressor(options: $0).compressWhole(pixels) }
    }

    private func compressWhole(_ pixels: PixelBuffer) throws -> Data {
        let format = try PNGSampleFormat([pixels], format: pixels.format)
        var writer = PNGWriter()
        writer.append(.imageHeader, format.header(width: pixels.width, height: pixels.height))
        try writer.append(self.options.metadata)
        format.appendPalette(to: &writer)
        let rows = 0..<pixels.height
        writer.append(.pixels, try self.compressedPixels(of: pixels, format, rows: rows, columns: 0..<pixels.width))
        writer.append(.end)
        return writer.data
    }

    /// The scanlines of a part of a picture, filtered and compressed.
    func compressedPixels(
        of pixels: PixelBuffer,
        _ format: PNGSampleFormat,
        rows: Range<Int>,
        columns: Range<Int>
    ) throws -> Data {
        let lineByteCount = format.byteCount(ofLine: columns.count) + 1
        let filtered = UnsafeMutableRawBufferPointer.allocate(byteCount: lineByteCount * rows.count, alignment: 16)
        defer { filtered.deallocate() }
        var filter = PNGLineFilter(
            lineByteCount: lineByteCount - 1,
            width: columns.count,
            bytesPerPixel: max(1, format.bitDepth * format.colorType.channelCount / 8),
            choosesFilters: self.choosesFilters(for: format)
        )
        for row in rows {
            if row % 64 == 0 { try Task.checkCancellation() }
            let target = (row - rows.lowerBound) * lineByteCount
            filter.write(UnsafeMutableRawBufferPointer(rebasing: filtered[target..<target + lineByteCount])) { line in
                format.write(row: row, of: pixels, columns: columns, to: line)
            }
        }
        return try PNGDeflater(level: self.options.pngLevel).deflated(UnsafeRawBufferPointer(filtered))
    }

    private func choosesFilters(for format: PNGSampleFormat) -> Bool {
        switch self.options.pngFilter {
        case .automatic: format.suitsFilters && self.options.pngLevel > 0
        case .none: false
        case .all: true
        }
    }
}

extension EncodeOptions {
    /// The file that `compress` makes with these options or, where that is too large, with ones of more effort.
    ///
    /// Nothing else makes a PNG smaller: it keeps every pixel.
    ///
    /// - Throws: `CodingError.Code.encodingFailed` when no file fits the limit of bytes; what `compress` throws.
    func smallestPNG(_ compress: (EncodeOptions) throws -> Data) throws -> Data {
        let whole = try compress(self)
        guard let limit = self.maximumByteCount, whole.count > limit else { return whole }
        var smallest = whole.count
        for filter in [PNGFilter.automatic, .all, .none] {
            var options = self
            options.pngLevel = 9
            options.pngFilter = filter
            guard options != self else { continue }
            let data = try compress(options)
            if data.count <= limit { return data }
            smallest = min(smallest, data.count)
        }
        throw CodingError.notEncoded(
            .png,
            "As PNG, which keeps every pixel, the picture takes \(smallest) bytes of \(limit); make it smaller "
                + "or choose a lossy format."
        )
    }
}

/// Puts the chunks of a PNG together.
struct PNGWriter {
    /// The file so far.
    private(set) var data = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])

    /// Adds a chunk of which the content comes in pieces.
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

    /// Adds the blocks of metadata that there are.
    mutating func append(_ metadata: EncodeOptions.Metadata) throws(CodingError) {
        if let profile = metadata.colorProfile {
            // A name is required; the profile has its own.
            self.append(.colorProfile, Data("ICC profile\0\0".utf8), try PNGDeflater(level: 9).deflated(profile))
        }
        if let exif = metadata.exif { self.append(.exif, exif) }
        if let xmp = metadata.xmp {
            // Keyword, not compressed, no language, no translated keyword (section 11.3.3.4).
            self.append(.text, Data("XML:com.adobe.xmp\0\0\0\0\0".utf8), xmp)
        }
    }
}

extension Data {
    /// Adds a number, its highest byte first.
    mutating func append<Number: FixedWidthInteger>(bigEndian number: Number) {
        Swift.withUnsafeBytes(of: number.bigEndian) { self.append(contentsOf: $0) }
    }
}

/// Compresses whole blocks of bytes as zlib streams.
///
/// libdeflate, because it makes smaller files than zlib in half the time. It takes its input in
/// one piece: a picture's filtered scanlines are held at once.
struct PNGDeflater: ~Copyable {
    /// libdeflate's levels, 0 to 12, that make files no larger than zlib's 0 to 9, measured on photographs.
    private static let levels: [CInt] = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]

    private let compressor: OpaquePointer

    /// The effort is on zlib's scale, 0 to 9; others are brought within.
    init(level: Int) throws(CodingError) {
        let level = Self.levels[min(max(0, level), Self.levels.count - 1)]
        guard let compressor = libdeflate_alloc_compressor(level) else { throw .outOfMemory(.png) }
        self.compressor = compressor
    }

    deinit {
        libdeflate_free_compressor(self.compressor)
    }

    /// The bytes as a zlib stream.
    borrowing func deflated(_ data: Data) throws(CodingError) -> Data {
        let result = data.withUnsafeBytes { bytes in
            Result<Data, CodingError> { () throws(CodingError) in try self.deflated(bytes) }
        }
        return try result.get()
    }

    /// The bytes as a zlib stream.
    borrowing func deflated(_ bytes: UnsafeRawBufferPointer) throws(CodingError) -> Data {
        let bound = libdeflate_zlib_compress_bound(self.compressor, bytes.count)
        guard MemoryRoom.has(bound) else { throw .outOfMemory(.png) }
        // What is not written to is never touched, and so costs no memory.
        let output = UnsafeMutableRawPointer.allocate(byteCount: bound, alignment: 16)
        defer { output.deallocate() }
        let count = libdeflate_zlib_compress(self.compressor, bytes.baseAddress, bytes.count, output, bound)
        guard count > 0 else { throw .notEncoded(.png, "The picture can't be compressed as PNG.") }
        return Data(bytes: output, count: count)
    }
}

/// Filters scanlines from the top, each with the filter that suits it best.
struct PNGLineFilter {
    private static let filterCount = 5

    private let lineByteCount: Int
    private let bytesPerPixel: Int
    private let choosesFilters: Bool
    /// The line that is being written and the one above; a sample may take a byte here that
    /// takes less in the file.
    private var line: [UInt8]
    private var prior: [UInt8]
    /// The line as filtered by each filter.
    private var candidates: [UInt8]

    init(lineByteCount: Int, width: Int, bytesPerPixel: Int, choosesFilters: Bool) {
        self.lineByteCount = lineByteCount
        self.bytesPerPixel = bytesPerPixel
        self.choosesFilters = choosesFilters
        self.line = Array(repeating: 0, count: max(lineByteCount, width))
        self.prior = self.line
        self.candidates = choosesFilters ? Array(repeating: 0, count: Self.filterCount * (lineByteCount + 1)) : []
    }

    /// Writes the next line with its filter byte to `target`.
    ///
    /// - Parameters:
    ///   - target: Memory for the line and one byte more.
    ///   - fill: Writes the samples of the line.
    mutating func write(_ target: UnsafeMutableRawBufferPointer, _ fill: (UnsafeMutablePointer<UInt8>) -> Void) {
        swap(&self.line, &self.prior)
        self.line.withUnsafeMutableBufferPointer { line in
            if let base = line.baseAddress { fill(base) }
        }
        guard self.choosesFilters else {
            target[0] = 0
            self.line.withUnsafeBytes { line in
                UnsafeMutableRawBufferPointer(rebasing: target[1...]).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: line[..<self.lineByteCount])
                )
            }
            return
        }
        let step = self.lineByteCount + 1
        let best = self.bestFilter()
        self.candidates.withUnsafeBytes { candidates in
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: candidates[best * step..<(best + 1) * step]))
        }
    }

    private mutating func bestFilter() -> Int {
        let step = self.lineByteCount + 1
        return self.candidates.withUnsafeMutableBufferPointer { candidates in
            self.line.withUnsafeBufferPointer { line in
                self.prior.withUnsafeBufferPointer { prior in
                    guard
                        let candidates = candidates.baseAddress, let line = line.baseAddress,
                        let prior = prior.baseAddress
                    else { return 0 }
                    var best = 0
                    var least = UInt64.max
                    for filter in 0..<Self.filterCount {
                        let sum = cpngfilters_apply(
                            CInt(filter),
                            candidates + filter * step,
                            line,
                            prior,
                            self.lineByteCount,
                            self.bytesPerPixel
                        )
                        if sum < least {
                            least = sum
                            best = filter
                        }
                    }
                    return best
                }
            }
        }
    }
}
