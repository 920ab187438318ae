import FoundationEssentials
import Glibc
import TintypeImage

/// A picture of which a part has arrived: the first rows, or the first scans.
final class JPEGPartialPicture {
    private let header: JPEGHeader
    /// By how much both sides are divided.
    let divisor: Int
    private let allowsTruncated: Bool
    private let decompressor: JPEGDecompressor
    private let work: DecodeWork
    /// Counts previews apart: they must not use up what the picture itself needs.
    ///
    /// How many there are is not its affair.
    let previewWork = DecodeWork(.none, format: .jpeg)
    /// The rows of a picture without scans, black from where they end; `nil` until the first one.
    private var rows: UnsafeMutableRawBufferPointer?
    private var isStarted = false
    private var isComplete = false
    private var shownRowCount = 0
    private var shownScanCount = 0
    private var previewCost = 0.0
    private var usedByteCount = 0
    /// The last preview of a picture with scans.
    private var shown: PixelBuffer?

    init(_ header: JPEGHeader, options: DecodeOptions, work: DecodeWork) throws {
        self.header = header
        self.divisor = header.divisor(for: options.sufficientSize)
        self.allowsTruncated = options.allowsTruncated
        self.work = work
        self.decompressor = try JPEGDecompressor(color: JPEGColor(header, options.color), work: work)
    }

    deinit {
        free(self.rows?.baseAddress)
    }

    /// Whether there are rows to show although reading failed.
    var hasRows: Bool { self.rows != nil && self.decompressor.rowCount > 0 }

    /// Decodes as far as `bytes` go, which follow those used before.
    ///
    /// - Returns: How many of them are used up.
    func read(_ bytes: UnsafeRawBufferPointer, isComplete: Bool) throws -> Int {
        // What follows the picture is not looked at.
        guard !self.isComplete else { return bytes.count }
        self.decompressor.lend(bytes, isComplete: isComplete)
        defer { self.decompressor.lend(UnsafeRawBufferPointer(start: nil, count: 0), isComplete: false) }
        if !self.isStarted {
            self.isStarted = try self.decompressor.start(self.header, divisor: self.divisor)
            guard self.isStarted else { return bytes.count - self.decompressor.unreadCount }
        }
        if self.decompressor.hasScans {
            self.isComplete = try self.decompressor.readScans()
        } else {
            try self.readRows()
            self.isComplete = self.decompressor.isAtLastRow
        }
        let used = self.isComplete ? bytes.count : bytes.count - self.decompressor.unreadCount
        self.usedByteCount += used
        return used
    }

    /// What is known, or `nil` when nothing was added since the last call.
    func preview() throws -> PixelBuffer? {
        guard self.isStarted else { return nil }
        if self.decompressor.hasScans {
            guard self.decompressor.completedScanCount > self.shownScanCount, let work = self.affordablePreviewWork
            else { return nil }
            self.previewCost += work
            return try self.scansSoFar(self.previewWork)
        }
        guard self.decompressor.rowCount > self.shownRowCount else { return nil }
        self.shownRowCount = self.decompressor.rowCount
        return try self.copyOfRows(self.previewWork)
    }

    /// The work of one more preview of scans, or `nil` where it would bring all of them over 1.5
    /// times the work of a decode that ended here.
    ///
    /// A preview converts the whole picture, and ten scans may be worth less than that together.
    /// Work is measured in conversions of a pixel. With libjpeg-turbo 2.1, taking in an empty scan costs
    /// a fifth of one for each pixel, a byte of entropy-coded data eight, and a preview, which is smoothed,
    /// about 1.6 for each pixel.
    private var affordablePreviewWork: Double? {
        let conversion = Double(self.header.width * self.header.height)
        let scans = Double(self.decompressor.completedScanCount)
        let input = conversion * 0.2 * scans + Double(self.usedByteCount) * 8
        let work = conversion * 1.6
        // The first one is always worth it.
        return self.previewCost == 0 || self.previewCost + work <= 1.5 * (conversion + input) ? work : nil
    }

    /// All that is known at the end.
    func pixels() throws -> PixelBuffer {
        if !self.allowsTruncated, self.decompressor.endIsMissing || !self.isComplete {
            throw CodingError.truncated(.jpeg)
        }
        guard self.decompressor.hasScans else { return try self.copyOfRows(self.work) }
        if let shown = self.shown, self.shownScanCount == self.decompressor.completedScanCount { return shown }
        return try self.scansSoFar(self.work)
    }

    private func scansSoFar(_ work: DecodeWork) throws -> PixelBuffer {
        guard let layout = self.decompressor.layout, self.decompressor.completedScanCount > 0 else {
            throw CodingError.truncated(.jpeg)
        }
        try self.decompressor.beginOutput()
        let pixels = try PixelBuffer(
            layout,
            fillingUnsafely: { bytes in
                guard try self.decompressor.readRows(into: bytes, count: layout.height, work: work) == layout.height
                else {
                    throw CodingError.corrupt(.jpeg, "a scan ends too early")
                }
            }
        )
        try self.decompressor.endOutput()
        self.shownScanCount = self.decompressor.completedScanCount
        self.shown = pixels
        return pixels
    }

    private func readRows() throws {
        guard let layout = self.decompressor.layout else { return }
        let rows = try self.rows ?? self.makeRows(layout)
        let start = self.decompressor.rowCount * layout.planes[0].bytesPerRow
        let rest = UnsafeMutableRawBufferPointer(rebasing: rows[start...])
        _ = try self.decompressor.readRows(into: rest, count: layout.height - self.decompressor.rowCount)
    }

    /// Zeroed memory that the system only provides as it is written.
    private func makeRows(_ layout: PixelLayout) throws(CodingError) -> UnsafeMutableRawBufferPointer {
        guard let base = calloc(layout.byteCount, 1) else { throw .outOfMemory(.jpeg) }
        let rows = UnsafeMutableRawBufferPointer(start: base, count: layout.byteCount)
        self.rows = rows
        return rows
    }

    private func copyOfRows(_ work: DecodeWork) throws -> PixelBuffer {
        guard let layout = self.decompressor.layout, let rows = self.rows else { throw CodingError.truncated(.jpeg) }
        let end = self.decompressor.rowCount * layout.planes[0].bytesPerRow
        return try PixelBuffer(layout, copying: UnsafeRawBufferPointer(rebasing: rows[..<end]), work: work)
    }
}
