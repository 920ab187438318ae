// SPDX-License-Identifier: Apache-2.0

#if WebP
import CTintypeWebP
import Glibc
import TintypeImage

/// The rows of a lossy still image as libwebp decodes them.
///
/// Use it only while the bytes of the file are lent.
final class WebPRowSource: RowSource {
    /// The intended most bytes of new rows in memory at once.
    private static let window = 1 << 20
    /// The most new bytes to pass to the decoder at once, before and after the first rows.
    private static let maximumSteps = (4 << 10, 256 << 10)

    let layout: PixelLayout
    private let bytes: UnsafeRawBufferPointer
    private let allowsTruncated: Bool
    // Declared before the window so that it is freed first: it writes to the window.
    private let decoder: WebPImageDecoder
    private var window: WebPRowWindow
    private let work: DecodeWork
    /// The number of bytes that the decoder has seen, and the number of new ones that it sees next.
    private var end: Int
    private var step: Int
    /// The number of rows decoded, and the number read.
    private var rowCount = 0
    private var readRowCount = 0

    /// Begins with the first row; `nil` if the system refuses the address range.
    init?(_ source: WebPSource, layout: PixelLayout) throws(CodingError) {
        guard let window = WebPRowWindow(byteCount: layout.byteCount),
            let target = WebPTarget(window.bytes, layout: layout)
        else { return nil }
        self.decoder = try WebPImageDecoder(source.image, to: target)
        self.window = window
        self.work = source.work
        self.layout = layout
        self.bytes = source.codedBytes
        self.allowsTruncated = source.allowsTruncated
        // The first bytes of a lossy image yield no rows, but the next one may yield many.
        self.end = source.image.preludeByteCount
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
        // Keep one row: libwebp writes alpha one row later than colour.
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
            // The missing rows are zero.
            self.rowCount = self.layout.height
        }
        // One byte of a flat image may yield many rows; a kilobyte of a detailed one yields few.
        let newByteCount = (self.rowCount - rowCount) * self.layout.planes[0].bytesPerRow
        if newByteCount > Self.window {
            self.step = max(1, self.step / 2)
        } else if newByteCount < Self.window / 4 {
            let most = self.rowCount == 0 ? Self.maximumSteps.0 : Self.maximumSteps.1
            self.step = max(self.step, min(most, self.step * 2))
        }
    }
}

/// The address range of all rows of an image, of which only written rows that are not yet released use memory.
///
/// libwebp needs the address of a whole image, but never reads rows again after it has returned them. Pages are zero
/// until they are written.
struct WebPRowWindow: ~Copyable {
    /// The number of bytes to release at once, because each call costs about a microsecond.
    private static let step = 1 << 20

    /// The whole range.
    let bytes: UnsafeMutableRawBufferPointer
    /// The number of bytes already released, from the start.
    private var released = 0

    /// Reserves the range; `nil` if the system refuses.
    init?(byteCount: Int) {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        let base = mmap(nil, byteCount, PROT_READ | PROT_WRITE, flags, -1, 0)
        guard let base, base != MAP_FAILED else { return nil }
        self.bytes = UnsafeMutableRawBufferPointer(start: base, count: byteCount)
    }

    deinit {
        munmap(self.bytes.baseAddress, self.bytes.count)
    }

    /// Releases the memory before `offset`.
    mutating func release(before offset: Int) {
        let end = offset / Self.step * Self.step
        guard end > self.released else { return }
        madvise(self.bytes.baseAddress.map { $0 + self.released }, end - self.released, Int32(MADV_DONTNEED))
        self.released = end
    }
}

/// The rows of a lossless still image, decoded one by one.
///
/// Use it only while the bytes of the file are lent.
final class VP8LRowSource: RowSource {
    let layout: PixelLayout
    private let stream: UnsafeRawBufferPointer
    private let isOpaque: Bool
    private let allowsTruncated: Bool
    private let work: DecodeWork
    private var decoder: VP8LDecoder
    /// Whether the remaining rows are missing, and therefore zero.
    private var isOver = false

    init(_ source: WebPSource, layout: PixelLayout) {
        self.layout = layout
        self.stream = source.image.losslessStream(of: source.bytes)
        self.isOpaque = !source.image.frame.hasAlpha
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
#endif
