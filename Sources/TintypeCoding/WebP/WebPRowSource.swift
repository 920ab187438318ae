import CWebP
import Glibc
import TintypeImage

/// Gives the rows of a lossy still as libwebp decodes them.
///
/// Used only while the bytes of the file are lent.
final class WebPRowSource: RowSource {
    /// The bytes of new rows that are meant to exist at once.
    private static let window = 1 << 20
    /// The most bytes that the decoder is shown at once, before and after the first rows.
    private static let maximumSteps = (4 << 10, 256 << 10)

    let layout: PixelLayout
    private let bytes: UnsafeRawBufferPointer
    private let allowsTruncated: Bool
    // In this order: the decoder writes to the window.
    private let decoder: WebPPictureDecoder
    private var window: WebPRowWindow
    private let work: DecodeWork
    /// How many bytes the decoder has seen, and how many it sees next.
    private var end: Int
    private var step: Int
    /// How many rows there are, and how many were read.
    private var rowCount = 0
    private var readRowCount = 0

    /// Begins with the first row; `nil` where the system refuses the range of addresses.
    init?(_ source: WebPSource, layout: PixelLayout) throws(CodingError) {
        guard let window = WebPRowWindow(byteCount: layout.byteCount),
            let target = WebPTarget(window.bytes, layout: layout)
        else { return nil }
        self.decoder = try WebPPictureDecoder(source.picture, to: target)
        self.window = window
        self.work = source.work
        self.layout = layout
        self.bytes = source.codedBytes
        self.allowsTruncated = source.allowsTruncated
        // The first bytes of a lossy image give no rows, but the next one may give many.
        self.end = source.picture.preludeByteCount
        self.step = 64
    }

    func readRow(into row: UnsafeMutableRawBufferPointer) throws {
        precondition(self.readRowCount < self.layout.height, "There are no more rows.")
        while self.rowCount <= self.readRowCount { try self.decodeMore() }
        let plane = self.layout.planes[0]
        let offset = self.readRowCount * plane.bytesPerRow
        let decoded = self.window.bytes[offset..<offset + plane.usedBytesPerRow]
        row.copyMemory(from: UnsafeRawBufferPointer(rebasing: decoded))
        self.readRowCount += 1
        // One row stays: alpha is written a row later than colour.
        self.window.release(before: offset - plane.bytesPerRow)
    }

    private func decodeMore() throws {
        let rowCount = self.rowCount
        let before = self.end
        self.end = min(self.end + self.step, self.bytes.count)
        if rowCount == 0 { try Task.checkCancellation() }
        try self.work.count(bytes: self.end - before)
        let status = try self.decoder.update(
            UnsafeRawBufferPointer(rebasing: self.bytes[..<self.end]),
            work: self.work
        )
        self.rowCount = self.decoder.rowCount
        if status != VP8_STATUS_SUSPENDED || self.end == self.bytes.count {
            try WebPDecompressor.check(
                status,
                rowCount: self.rowCount,
                height: self.layout.height,
                allowsTruncated: self.allowsTruncated
            )
            // What is missing is zero.
            self.rowCount = self.layout.height
        }
        // A flat image has many rows in a byte, a lively one few in a kilobyte.
        let newByteCount = (self.rowCount - rowCount) * self.layout.planes[0].bytesPerRow
        if newByteCount > Self.window {
            self.step = max(1, self.step / 2)
        } else if newByteCount < Self.window / 4 {
            let most = self.rowCount == 0 ? Self.maximumSteps.0 : Self.maximumSteps.1
            self.step = max(self.step, min(most, self.step * 2))
        }
    }
}

/// The memory for all rows of an image, of which only those take room that are written and not yet given back.
///
/// libwebp wants the address of a whole image, but never looks back at rows that it has given out. Pages are zero
/// until they are written.
struct WebPRowWindow: ~Copyable {
    /// Rows are given back by this many bytes at once: each call costs about a microsecond.
    private static let step = 1 << 20

    /// The whole range.
    let bytes: UnsafeMutableRawBufferPointer
    /// What is given back already, from the start.
    private var released = 0

    /// Reserves the range, or `nil` where the system refuses.
    init?(byteCount: Int) {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        let base = mmap(nil, byteCount, PROT_READ | PROT_WRITE, flags, -1, 0)
        guard let base, base != MAP_FAILED else { return nil }
        self.bytes = UnsafeMutableRawBufferPointer(start: base, count: byteCount)
    }

    deinit {
        munmap(self.bytes.baseAddress, self.bytes.count)
    }

    /// Gives back what lies before `offset`.
    mutating func release(before offset: Int) {
        let end = offset / Self.step * Self.step
        guard end > self.released else { return }
        madvise(self.bytes.baseAddress.map { $0 + self.released }, end - self.released, Int32(MADV_DONTNEED))
        self.released = end
    }
}

/// Gives the rows of a lossless still as they are decoded.
///
/// Used only while the bytes of the file are lent.
final class VP8LRowSource: RowSource {
    let layout: PixelLayout
    private let stream: UnsafeRawBufferPointer
    private let isOpaque: Bool
    private let allowsTruncated: Bool
    private let work: DecodeWork
    private var decoder: VP8LDecoder
    /// Whether the rest is missing, and zero.
    private var isOver = false

    init(_ source: WebPSource, layout: PixelLayout) {
        self.layout = layout
        self.stream = source.picture.losslessStream(of: source.bytes)
        self.isOpaque = !source.picture.frame.hasAlpha
        self.allowsTruncated = source.allowsTruncated
        self.work = source.work
        self.decoder = VP8LDecoder(width: layout.width, height: layout.height)
    }

    func readRow(into row: UnsafeMutableRawBufferPointer) throws {
        let used = self.layout.planes[0].usedBytesPerRow
        guard let target = row.baseAddress, row.count >= used else { preconditionFailure("The row does not fit.") }
        if self.decoder.row == 0 { try Task.checkCancellation() }
        if !self.isOver {
            do {
                return try self.decoder.readRow(
                    to: target,
                    hasAlpha: self.layout.format.hasAlpha,
                    isOpaque: self.isOpaque,
                    from: self.stream,
                    work: self.work
                )
            } catch let error as VP8LError {
                let isShown = self.allowsTruncated && !error.isFatal(afterRows: self.decoder.row)
                guard isShown else { throw CodingError(error) }
                self.isOver = true
            }
        }
        target.initializeMemory(as: UInt8.self, repeating: 0, count: used)
    }
}
