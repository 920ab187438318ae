// SPDX-License-Identifier: Apache-2.0

import TintypeImage

/// The rows of an image that is not interlaced, inflated on demand.
///
/// For a large image it takes a strip of memory. All scanlines of a smaller one are inflated at once, which is faster.
/// The bytes of the file must outlive the object.
final class PNGRowSource: RowSource {
    /// The most filtered bytes to inflate at once, so that a thumbnail stays within its memory estimate.
    static let maximumWholeByteCount = 24 << 20

    let layout: PixelLayout
    private let converter: PNGSampleConverter
    private let lines: PNGScanlines
    /// All scanlines, if they were inflated at once; otherwise `nil`.
    private let whole: UnsafeMutableRawBufferPointer?
    private let isLenient: Bool
    private let work: DecodeWork
    /// The source of strips of scanlines, if another lane may inflate them, and the present strip.
    private let ahead: PNGAhead?
    private var strip: PNGStrip?
    private var data: PNGPixelData
    private var piece = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Whether the remaining rows are missing, which is allowed.
    private var isCut = false

    /// Opens the rows of a file.
    ///
    /// - Parameters:
    ///   - bytes: The file.
    ///   - header: The parsed header of the file.
    ///   - isLenient: Whether the decodable part of the pixels suffices.
    ///   - ahead: The inflation that another lane may share, or `nil`; the caller must call ``PNGAhead/close()``
    ///     afterwards.
    ///   - work: The counter of the decode's work.
    /// - Throws: `CodingError`, `CancellationError`.
    init(
        _ bytes: UnsafeRawBufferPointer,
        header: PNGHeader,
        isLenient: Bool,
        ahead: PNGAhead? = nil,
        work: DecodeWork
    ) throws {
        self.layout = try PixelLayout(
            format: header.pixelFormat,
            width: header.layout.width,
            height: header.layout.height
        )
        self.converter = PNGSampleConverter(header, output: header.pixelFormat)
        self.isLenient = isLenient
        self.data = try PNGPixelData(bytes, of: header, isLenient: isLenient, work: work)
        self.work = work
        self.ahead = ahead
        if let ahead {
            let ownWork = DecodeWork(work.limits, format: .png)
            let data = try PNGPixelData(bytes, of: header, isLenient: isLenient, work: ownWork)
            ahead.open(try PNGInflation(data, byteCount: header.layout.filteredByteCount, work: ownWork))
        }
        self.whole = isLenient || ahead != nil ? nil : try Self.inflateWhole(self.data, header.layout, work)
        self.lines =
            if whole != nil || ahead != nil {
                PNGScanlines(header.layout, filtered: whole ?? .init(start: nil, count: 0), work: work)
            } else {
                try PNGScanlines(header.layout, work: work)
            }
    }

    deinit {
        self.whole?.deallocate()
    }

    func readRow(into row: UnsafeMutableRawBufferPointer) throws {
        let count = self.layout.planes[0].usedBytesPerRow
        guard let target = row.baseAddress, row.count >= count else { return }
        if let line = try self.nextLine() {
            self.converter.convert(line.samples, count: self.layout.width, to: target)
        } else {
            UnsafeMutableRawBufferPointer(start: target, count: count).initializeMemory(as: UInt8.self, repeating: 0)
        }
    }

    /// Returns the next line, or `nil` if it is missing and that is allowed.
    private func nextLine() throws -> PNGScanlines.Line? {
        if self.isCut { return nil }
        do {
            while true {
                if self.ahead != nil, self.lines.isAtEndOfMemory { try self.takeStrip() }
                if let line = try self.lines.next(&self.piece) {
                    if self.lines.isFinished, !self.isLenient, self.whole == nil { try self.finish() }
                    return line
                }
                guard let piece = try self.data.next() else { throw CodingError.truncated(.png) }
                self.piece = piece
            }
        } catch let error as CodingError {
            guard self.isLenient, self.lines.lineCount > 0, error.isDamage else { throw error }
            self.isCut = true
            return nil
        }
    }

    private func takeStrip() throws {
        guard let ahead else { return }
        if let error = self.strip?.error { throw error }
        let strip = try ahead.next(after: self.strip)
        self.strip = strip
        // Two lanes count separately, so add the work of the other one to this counter.
        try self.work.count(strip.units)
        self.lines.goOn(with: strip.bytes)
        if self.lines.isAtEndOfMemory, let error = strip.error { throw error }
    }

    /// Verifies the checksums behind the last line, and the end of the file.
    private func finish() throws {
        if let ahead { return try ahead.finish() }
        var hasEnded = try self.lines.hasEnded(&self.piece)
        while var piece = try self.data.next() {
            if !hasEnded { hasEnded = try self.lines.hasEnded(&piece) }
        }
        guard hasEnded else { throw CodingError.truncated(.png) }
        try self.data.checkEnd()
    }

    /// Returns all scanlines; `nil` for a large image, and for unusual data.
    private static func inflateWhole(
        _ data: PNGPixelData,
        _ layout: PNGLayout,
        _ work: DecodeWork
    ) throws -> UnsafeMutableRawBufferPointer? {
        let count = layout.filteredByteCount
        guard count <= Self.maximumWholeByteCount else { return nil }
        var data = data
        let filtered = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        do {
            try data.withWhole { try PNGDecompressor.inflate($0, to: filtered, work: work) }
            try data.checkEnd()
            return filtered
        } catch {
            filtered.deallocate()
            guard error is PNGDecompressor.Unusual else { throw error }
            return nil
        }
    }
}
