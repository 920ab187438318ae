// SPDX-License-Identifier: Apache-2.0

import CTintypeDeflate
import CTintypePNGFilters
import TintypeImage

/// Decodes the pixels of an image or frame.
///
/// The usual case takes a fast path: libdeflate inflates all pixels at once, twice as fast as zlib, into the memory of
/// the image itself, and the filters are undone in place. Large, truncated or broken data is decoded row by row through
/// zlib, which also decides whether data is broken.
struct PNGDecompressor {
    /// The most filtered bytes to inflate at once, because that cannot be cancelled and takes up to 50 ms.
    private static let maximumWholeByteCount = 32 << 20
    /// The most compressed bytes to inflate at once, however few bytes they yield, because empty blocks take time too.
    private static let maximumCompressedByteCount = 2 << 20

    private let bytes: UnsafeRawBufferPointer
    private let header: PNGHeader
    private let converter: PNGSampleConverter
    private let isLenient: Bool
    private let work: DecodeWork
    /// The layout of the image or of one frame.
    private var layout: PNGLayout
    /// Whether the end chunk must be present; `false` for one frame of several.
    private var needsEnd = true

    /// Creates a decoder of a file's pixels.
    ///
    /// - Parameters:
    ///   - bytes: The file.
    ///   - header: The parsed header of the file.
    ///   - output: The header's own pixel format, or `rgba8`.
    ///   - isLenient: Whether the decodable part of the pixels suffices.
    ///   - work: The counter of the decode's work.
    init(
        _ bytes: UnsafeRawBufferPointer,
        header: PNGHeader,
        output: PixelFormat,
        isLenient: Bool,
        work: DecodeWork
    ) {
        self.bytes = bytes
        self.work = work
        self.header = header
        self.converter = PNGSampleConverter(header, output: output)
        self.isLenient = isLenient
        self.layout = header.layout
    }

    /// Returns the most memory in bytes that decoding takes in addition to the pixels.
    static func extraByteCount(for header: PNGHeader) -> Int {
        let output = header.animation == nil ? header.pixelFormat : .rgba8
        let isInPlace = !header.layout.isInterlaced && PNGSampleConverter(header, output: output).isIdentity
        return self.byteCount(for: header, wholeUpTo: Self.maximumWholeByteCount, isInPlace: isInPlace)
    }

    /// Returns the memory in bytes that reading rows takes.
    static func rowsByteCount(for header: PNGHeader) -> Int {
        self.byteCount(for: header, wholeUpTo: PNGRowSource.maximumWholeByteCount, isInPlace: false)
    }

    private static func byteCount(for header: PNGHeader, wholeUpTo limit: Int, isInPlace: Bool) -> Int {
        let filtered = header.layout.filteredByteCount
        let lines = 3 * header.layout.byteCount(ofLine: header.layout.width)
        // A larger image is inflated strip by strip.
        guard filtered <= limit, header.pixelByteCount <= Self.maximumCompressedByteCount else {
            return PNGScanlines.stripByteCount + PNGInflater.byteCount + lines
        }
        // The contents of several chunks are joined before they are inflated.
        let compressed = header.pixelChunkCount > 1 ? header.pixelByteCount : 0
        return (isInPlace ? header.layout.height : filtered) + compressed + lines
    }

    /// Decodes the image; for an animation, its default image.
    ///
    /// - Throws: `CodingError`, `ImageError`, `CancellationError`.
    func decompress() throws -> PixelBuffer {
        try self.decompress(try PNGPixelData(self.bytes, of: self.header, isLenient: self.isLenient, work: self.work))
    }

    /// Decodes a frame whose first chunk of pixels begins at `offset`.
    ///
    /// - Throws: `CodingError`, `ImageError`, `CancellationError`.
    func decompress(frameAt offset: Int, size: PixelSize) throws -> PixelBuffer {
        var frame = self
        frame.layout.width = size.width
        frame.layout.height = size.height
        frame.needsEnd = false
        return try frame.decompress(PNGPixelData(self.bytes, at: offset, isLenient: self.isLenient, work: self.work))
    }

    private func decompress(_ data: PNGPixelData) throws -> PixelBuffer {
        try Task.checkCancellation()
        let layout = try PixelLayout(
            format: self.converter.output,
            width: self.layout.width,
            height: self.layout.height
        )
        if !self.isLenient, let pixels = try self.decompressWhole(data, layout) { return pixels }
        return try PixelBuffer(layout, fillingUnsafely: { try self.decompressLines(data, layout, to: $0) })
    }

    // MARK: At once

    /// Decodes on the fast path; `nil` if the image is too large for it, or its data is unusual.
    private func decompressWhole(_ data: PNGPixelData, _ layout: PixelLayout) throws -> PixelBuffer? {
        let count = self.layout.filteredByteCount
        guard count <= Self.maximumWholeByteCount else { return nil }
        var rest = data
        if self.converter.isIdentity, !self.layout.isInterlaced {
            // Each row needs an extra byte for its filter unless rows are padded.
            let extra = max(0, count - layout.byteCount)
            let pixels = try Self.catchingUnusual {
                try PixelBuffer(layout, extraByteCount: extra) { pixels in
                    let filtered = UnsafeMutableRawBufferPointer(rebasing: pixels[(pixels.count - count)...])
                    try rest.withWhole { try Self.inflate($0, to: filtered, work: self.work) }
                    if self.needsEnd { try rest.checkEnd() }
                    try self.unfilter(filtered, to: pixels, layout)
                }
            }
            return pixels
        }
        try MemoryRoom.require(count)
        let filtered = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        defer { filtered.deallocate() }
        return try Self.catchingUnusual {
            try rest.withWhole { try Self.inflate($0, to: filtered, work: self.work) }
            if self.needsEnd { try rest.checkEnd() }
            let lines = PNGScanlines(self.layout, filtered: filtered, work: self.work)
            return try PixelBuffer(
                layout,
                fillingUnsafely: { pixels in
                    var image = PNGImage(self.converter, passes: lines.passes, layout: layout, pixels: pixels)
                    var none = UnsafeRawBufferPointer(start: nil, count: 0)
                    while let line = try lines.next(&none) { image.write(line) }
                }
            )
        }
    }

    /// The data does not suit the fast path, which is not an error yet.
    struct Unusual: Error {}

    private static func catchingUnusual(_ body: () throws -> PixelBuffer) throws -> PixelBuffer? {
        do {
            return try body()
        } catch is Unusual {
            return nil
        }
    }

    /// Inflates all scanlines.
    ///
    /// - Throws: ``Unusual`` if the data does not contain exactly these scanlines.
    static func inflate(
        _ data: UnsafeRawBufferPointer,
        to filtered: UnsafeMutableRawBufferPointer,
        work: DecodeWork
    ) throws {
        guard data.count <= Self.maximumCompressedByteCount else { throw Unusual() }
        try work.count(data.count * DecodeWork.unitsPerByte + filtered.count / 4)
        guard let inflater = libdeflate_alloc_decompressor() else { throw CodingError.outOfMemory(.png) }
        defer { libdeflate_free_decompressor(inflater) }
        let result = libdeflate_zlib_decompress(
            inflater,
            data.baseAddress,
            data.count,
            filtered.baseAddress,
            filtered.count,
            nil
        )
        guard result == LIBDEFLATE_SUCCESS else { throw Unusual() }
    }

    /// Undoes the filters of scanlines at the end of the image's own memory.
    ///
    /// A row begins before its scanline, and ends before the next one.
    private func unfilter(
        _ filtered: UnsafeMutableRawBufferPointer,
        to pixels: UnsafeMutableRawBufferPointer,
        _ layout: PixelLayout
    ) throws {
        let plane = layout.planes[0]
        let count = plane.usedBytesPerRow
        let zeros = [UInt8](repeating: 0, count: count)
        guard
            let first = pixels.baseAddress?.assumingMemoryBound(to: UInt8.self),
            let lines = filtered.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { return }
        for row in 0..<plane.height {
            try self.work.count(plane.width + count / 4)
            let target = first + row * plane.bytesPerRow
            let line = lines + row * (count + 1)
            let isKnown = zeros.withUnsafeBufferPointer { zeros in
                guard let zeros = zeros.baseAddress else { return false }
                let prior = row == 0 ? zeros : UnsafePointer(target - plane.bytesPerRow)
                let filter = CInt(line[0])
                return cpngfilters_undo(filter, target, line + 1, prior, count, self.layout.bytesPerPixel) != 0
            }
            guard isKnown else { throw CodingError.corrupt(.png, "a scanline has an unknown filter") }
        }
    }

    // MARK: Line by line

    private func decompressLines(
        _ data: PNGPixelData,
        _ layout: PixelLayout,
        to pixels: UnsafeMutableRawBufferPointer
    ) throws {
        var data = data
        // Lines may be missing.
        if self.isLenient { pixels.initializeMemory(as: UInt8.self, repeating: 0) }
        let lines = try PNGScanlines(self.layout, work: self.work)
        var image = PNGImage(self.converter, passes: lines.passes, layout: layout, pixels: pixels)
        do {
            var hasEnded = false
            while let piece = try data.next() {
                var input = piece
                while let line = try lines.next(&input) { image.write(line) }
                if lines.isFinished, !hasEnded, !self.isLenient { hasEnded = try lines.hasEnded(&input) }
            }
            guard lines.isFinished, hasEnded || self.isLenient else { throw CodingError.truncated(.png) }
            if !self.isLenient, self.needsEnd { try data.checkEnd() }
        } catch let error as CodingError {
            guard self.isLenient, lines.lineCount > 0, error.isDamage else { throw error }
        }
    }
}
