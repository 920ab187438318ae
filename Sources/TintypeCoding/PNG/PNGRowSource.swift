import TintypeImage

/// Lends the rows of an image that is not interlaced, inflated as they are asked for.
///
/// Takes a strip of memory, however large the image is; of a smaller one all scanlines are
/// inflated at once, which is faster. The bytes of the file must outlive it.
final class PNGRowSource: RowSource {
    /// The filtered scanlines that are inflated at once: with them a thumbnail stays within what it may take.
    static let maximumWholeByteCount = 24 << 20

    let layout: PixelLayout
    private let converter: PNGSampleConverter
    private let lines: PNGScanlines
    /// All scanlines, where they were inflated at once.
    private let whole: UnsafeMutableRawBufferPointer?
    private let isLenient: Bool
    private let work: DecodeWork
    /// What gives strips of scanlines instead, and the present one.
    private let ahead: PNGAhead?
    private var strip: PNGStrip?
    private var data: PNGPixelData
    private var piece = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Whether the rest is missing, and that is allowed.
    private var isCut = false

    /// - Parameters:
    ///   - bytes: The file.
    ///   - header: What it says about its samples.
    ///   - isLenient: Whether what could be decoded is good enough.
    ///   - ahead: What inflates, perhaps on another lane; ``PNGAhead/close()`` must follow.
    ///   - work: Counts.
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

    /// The next line, or `nil` for one that is missing, where that is allowed.
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
        // Two lanes count apart: one of the counts is to be that of all.
        try self.work.count(strip.units)
        self.lines.goOn(with: strip.bytes)
        if self.lines.isAtEndOfMemory, let error = strip.error { throw error }
    }

    /// Looks at the checksums behind the last line, and for the end.
    private func finish() throws {
        if let ahead { return try ahead.finish() }
        var hasEnded = try self.lines.hasEnded(&self.piece)
        while var piece = try self.data.next() {
            if !hasEnded { hasEnded = try self.lines.hasEnded(&piece) }
        }
        guard hasEnded else { throw CodingError.truncated(.png) }
        try self.data.checkEnd()
    }

    /// All scanlines; `nil` for a large image, and for data with anything unusual about them.
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
