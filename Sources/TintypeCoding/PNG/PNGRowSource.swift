import TintypeImage

/// Lends the rows of a picture that is not interlaced, inflated as they are asked for.
///
/// Takes a strip of memory, however large the picture is; of a smaller one all scanlines are
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
    private var data: PNGPixelData
    private var piece = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Whether the rest is missing, and that is allowed.
    private var isCut = false

    init(_ bytes: UnsafeRawBufferPointer, header: PNGHeader, isLenient: Bool, work: DecodeWork) throws {
        self.layout = try PixelLayout(
            format: header.pixelFormat,
            width: header.layout.width,
            height: header.layout.height
        )
        self.converter = PNGSampleConverter(header, output: header.pixelFormat)
        self.isLenient = isLenient
        self.data = try PNGPixelData(bytes, of: header, isLenient: isLenient, work: work)
        self.whole = isLenient ? nil : try Self.inflateWhole(self.data, header.layout, work)
        self.lines =
            if let whole {
                PNGScanlines(header.layout, filtered: whole, work: work)
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

    /// Looks at the checksums behind the last line, and for the end.
    private func finish() throws {
        while try self.data.next() != nil {}
        try self.data.checkEnd()
    }

    /// All scanlines; `nil` for a large picture, and for data with anything unusual about them.
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
