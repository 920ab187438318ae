// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeImage

/// Decodes a JPEG while its bytes arrive: row by row, or scan by scan if it has several.
///
/// It keeps only the bytes that the library has not used yet: the head until the first scan, then less than a block's
/// worth. Decoding of arithmetic codes cannot be suspended; such a file is kept and decoded at the end.
final class JPEGIncrementalDecoder: IncrementalDecoder {
    /// The most bytes to pass to the library at once.
    private static let bytesAtOnce = 128 << 10
    /// The size of a segment and some blocks.
    ///
    /// If the library leaves more bytes than this, they contain fill bytes.
    private static let maximumPendingCount = 80 << 10

    private let options: DecodeOptions
    private let work: DecodeWork
    private var parser = JPEGHeaderParser()
    private var pending = Data()
    private var image: JPEGPartialImage?
    private var failure: CodingError?
    private(set) var header: ImageHeader?

    init(options: DecodeOptions) {
        self.options = options
        self.work = DecodeWork(options.limits, format: .jpeg)
    }

    var workDone: Int { self.work.spent.saturatingAdded(to: self.image?.previewWork.spent ?? 0) }

    var previewUnits: Int { self.image?.previewUnits ?? 0 }
    var outputUnits: Int { self.image?.outputUnits ?? 0 }

    func append(_ bytes: Data) throws {
        if let failure = self.failure { throw failure }
        do {
            try self.take(bytes)
        } catch let error as CodingError {
            self.failure = error
            throw error
        }
    }

    func preview() throws -> Image? {
        guard self.failure == nil else { return nil }
        return try self.image?.preview().map { self.image($0) }
    }

    func finish() throws -> DecodedImage {
        let header = self.parser.header
        guard self.header != nil else { throw self.failure ?? self.parser.missingEnd }
        guard let image = self.image else {
            if let failure = self.failure { throw failure }
            // The file uses arithmetic coding.
            return try EncodedJPEG(self.pending, header, []).decode(options: self.options)
        }
        if let failure = self.failure {
            guard self.options.allowsTruncated, failure.isDamage, image.hasRows else { throw failure }
        } else {
            try self.feed(Data(), isComplete: true, to: image)
        }
        return header.decodedImage(try image.pixels(), divisor: image.divisor, damage: image.damage)
    }

    private func take(_ bytes: Data) throws {
        if let image = self.image {
            try self.feedStepwise(bytes, to: image)
            return
        }
        self.pending.append(bytes)
        try self.options.limits.check(self.pending)
        guard self.header == nil, try self.parser.parse(self.pending, work: self.work) else { return }
        let header = self.parser.header
        try self.options.limits.check(header.imageHeader)
        self.header = header.imageHeader
        guard !header.isArithmetic else { return }
        let image = try JPEGPartialImage(header, options: self.options, work: self.work)
        self.image = image
        let pending = self.pending
        self.pending = Data()
        try self.feedStepwise(pending, to: image)
    }

    /// Passes few bytes at a time to the library, so that a cancelled decode ends early however many bytes have
    /// arrived.
    private func feedStepwise(_ bytes: Data, to image: JPEGPartialImage) throws {
        for start in stride(from: 0, to: bytes.count, by: Self.bytesAtOnce) {
            let step = bytes.slice(from: start, to: start + Self.bytesAtOnce)
            try self.work.count(bytes: step.count)
            try self.feed(step, isComplete: false, to: image)
        }
    }

    private func feed(_ bytes: Data, isComplete: Bool, to image: JPEGPartialImage) throws {
        let input = self.pending.isEmpty ? bytes : self.pending + bytes
        let used = try input.withUnsafeBytes { try image.read($0, isComplete: isComplete) }
        // Copy the rest, so that it does not keep all bytes alive.
        self.pending = used == input.count ? Data() : Data(input.dropFirst(used))
        if self.pending.count > Self.maximumPendingCount { self.dropFillBytes() }
    }

    /// Reduces each run of fill bytes to one byte, which has the same meaning.
    ///
    /// Otherwise the library would scan the whole run again each time more bytes arrive. Source: ITU-T T.81, B.1.1.2.
    private func dropFillBytes() {
        var last: UInt8 = 0
        self.pending.removeAll { byte in
            defer { last = byte }
            return byte == 0xFF && last == 0xFF
        }
    }

    private func image(_ pixels: PixelBuffer) -> Image {
        Image(pixels: pixels, orientation: self.header?.orientation ?? .up, sourceFormat: .jpeg)
    }
}

/// A partly decoded image: its first rows, or its first scans.
final class JPEGPartialImage {
    private let header: JPEGHeader
    /// The divisor of both sides.
    let divisor: Int
    private let allowsTruncated: Bool
    private let decompressor: JPEGDecompressor
    private let work: DecodeWork
    /// Counts previews separately, so that they do not use up the budget of the image itself.
    ///
    /// It does not limit the number of previews.
    let previewWork = DecodeWork(.none, format: .jpeg)
    /// The rows of an image without scans, black below the last decoded row; `nil` until the first row.
    private var rows: UnsafeMutableRawBufferPointer?
    private var isStarted = false
    private var isComplete = false
    private var shownRowCount = 0
    private var shownScanCount = 0
    /// The last preview of an image with scans.
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

    /// Whether there are decoded rows to show although reading failed.
    var hasRows: Bool { self.rows != nil && self.decompressor.rowCount > 0 }

    /// Decodes as far as `bytes` go, which follow the used ones of the previous call.
    ///
    /// - Returns: The number of bytes used.
    func read(_ bytes: UnsafeRawBufferPointer, isComplete: Bool) throws -> Int {
        // Ignore bytes behind the image.
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
            self.isComplete = self.decompressor.findEnd()
        }
        return self.isComplete ? bytes.count : bytes.count - self.decompressor.unreadCount
    }

    /// The damage found so far.
    var damage: ImageDamage {
        self.isComplete ? self.decompressor.damage : self.decompressor.damage.union(.missingData)
    }

    /// The work of producing the rows of an image with several scans.
    var outputUnits: Int {
        guard self.decompressor.hasScans, let layout = self.decompressor.layout else { return 0 }
        return layout.width * layout.height * self.decompressor.unitsPerPixel
    }

    /// The work of a preview.
    ///
    /// For an image with scans the library produces all rows, smoothed, which takes 1.6 times as long (libjpeg-turbo
    /// 2.1). Ten scans together may be less work than that.
    var previewUnits: Int {
        guard self.isStarted, let layout = self.decompressor.layout else { return 0 }
        return self.decompressor.hasScans
            ? self.outputUnits + self.smoothingUnits : DecodeWork.units(ofCopying: layout.byteCount)
    }

    private var smoothingUnits: Int { self.outputUnits / 5 * 3 }

    /// Returns the decoded part of the image, or `nil` if nothing was added since the last call.
    func preview() throws -> PixelBuffer? {
        guard self.isStarted else { return nil }
        if self.decompressor.hasScans {
            guard self.decompressor.completedScanCount > self.shownScanCount else { return nil }
            try self.previewWork.count(self.smoothingUnits)
            return try self.scansSoFar(self.previewWork)
        }
        guard self.decompressor.rowCount > self.shownRowCount else { return nil }
        self.shownRowCount = self.decompressor.rowCount
        return try self.copyOfRows(self.previewWork)
    }

    /// Returns the decoded image at the end.
    ///
    /// - Throws: `CodingError.Code.truncated` if a part is missing that the options require.
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

    /// Allocates zeroed memory, whose pages the system provides only when they are written.
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
