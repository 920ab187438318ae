import CWebP
import Glibc
import TintypeImage

/// The rows of a picture that is still being decoded, and where they lie on the canvas.
final class WebPGrowingCanvas {
    private let decoder: any GrowingRows
    /// The memory that the decoder writes to.
    private let rows: WebPRowMemory
    private let rowLayout: PixelLayout
    private let layout: PixelLayout
    private let frame: AnimationFrame
    private let isLossless: Bool
    private var status = VP8_STATUS_SUSPENDED
    private var seenByteCount = 0
    /// The rows of the picture that are complete.
    private(set) var rowCount = 0

    /// Makes room for a picture.
    ///
    /// - Parameters:
    ///   - picture: The still or the frame.
    ///   - canvas: The size of an animation's canvas; `nil` for a still.
    ///   - sufficientSize: What a still is scaled down to.
    /// - Throws: `CodingError`, `ImageError` when memory runs out.
    init(_ picture: WebPCodedPicture, canvas: PixelSize?, sufficientSize: PixelSize?) throws {
        let stored = PixelSize(width: picture.frame.width, height: picture.frame.height)
        if let canvas {
            self.layout = try PixelLayout(format: .rgba8, width: canvas.width, height: canvas.height)
            self.rowLayout = try PixelLayout(format: .rgba8, width: stored.width, height: stored.height)
        } else {
            self.layout = try picture.layout(sufficientSize: sufficientSize)
            self.rowLayout = self.layout
        }
        guard let rows = WebPRowMemory(byteCount: self.rowLayout.byteCount),
            let target = WebPTarget(rows.bytes, layout: self.rowLayout)
        else { throw CodingError.outOfMemory(.webp) }
        self.decoder = picture.isLossless ? LosslessRows(picture, to: target) : try LossyRows(picture, to: target)
        self.rows = rows
        self.frame = picture.frame
        self.isLossless = picture.isLossless
    }

    /// Decodes as far as `bytes` go, those of the picture from its first one on.
    ///
    /// - Throws: `CodingError.Code.tooMuchWork`, `CancellationError`.
    func update(_ bytes: UnsafeRawBufferPointer, of picture: WebPCodedPicture, work: DecodeWork) throws {
        guard self.status == VP8_STATUS_SUSPENDED, bytes.count > self.seenByteCount else { return }
        // A lossless picture's header is read from its start until all of it is there.
        let isWaiting = self.isLossless && self.rowCount == 0 && picture.bytes.upperBound < picture.end
        if isWaiting, bytes.count < self.seenByteCount + self.seenByteCount / 4 { return }
        defer { self.rowCount = self.decoder.rowCount }
        self.status = try self.decoder.advance(through: bytes, work: work)
        self.seenByteCount = bytes.count
    }

    /// Throws unless all rows are there, or as many as there can be where that is allowed.
    func check(allowsTruncated: Bool) throws(CodingError) {
        try WebPDecompressor.check(
            self.status,
            rowCount: self.rowCount,
            height: self.rowLayout.height,
            allowsTruncated: allowsTruncated
        )
    }

    /// Throws when the bit stream broke.
    func checkDamage() throws(CodingError) {
        if self.status == VP8_STATUS_SUSPENDED { return }
        try self.check(allowsTruncated: false)
    }

    /// A copy of the canvas as far as it is known; the rest is zero.
    ///
    /// - Throws: `ImageError` when memory runs out, `CodingError.Code.tooMuchWork`, `CancellationError`.
    func pixels(work: DecodeWork) throws -> PixelBuffer {
        try PixelBuffer(
            self.layout,
            fillingUnsafely: { target in
                if self.layout == self.rowLayout {
                    let known = self.rowCount * self.layout.planes[0].bytesPerRow
                    try self.place(on: target, work: work)
                    try UnsafeMutableRawBufferPointer(rebasing: target[known...]).clear(work)
                } else {
                    try target.clear(work)
                    try self.place(on: target, work: work)
                }
            }
        )
    }

    /// Writes the known rows to where they lie on the canvas.
    private func place(on target: UnsafeMutableRawBufferPointer, work: DecodeWork) throws {
        let plane = self.rowLayout.planes[0]
        let bytesPerRow = self.layout.planes[0].bytesPerRow
        let isStill = self.layout == self.rowLayout
        let start = isStill ? 0 : self.frame.top * bytesPerRow + self.frame.left * self.layout.format.channelCount
        let strip = DecodeWork.rowsAtOnce(ofWidth: plane.width)
        for row in 0..<self.rowCount {
            if row % strip == 0 { try work.count(min(strip, self.rowCount - row) * plane.width / 4) }
            let from = row * plane.bytesPerRow
            let to = UnsafeMutableRawBufferPointer(
                rebasing: target[(start + row * bytesPerRow)...].prefix(plane.usedBytesPerRow)
            )
            to.copyMemory(
                from: UnsafeRawBufferPointer(rebasing: self.rows.bytes[from..<from + plane.usedBytesPerRow])
            )
        }
    }
}

/// Writes the rows of a picture, as many as its bytes suffice for.
private protocol GrowingRows: AnyObject {
    /// The rows that are complete.
    var rowCount: Int { get }

    /// Decodes as far as `bytes` go, those of the picture from its first one on.
    func advance(through bytes: UnsafeRawBufferPointer, work: DecodeWork) throws -> VP8StatusCode
}

private final class LossyRows: GrowingRows {
    /// The most bytes that are decoded between two looks at the budget.
    private static let step = 128 << 10

    private let decoder: WebPPictureDecoder
    private var end = 0

    init(_ picture: WebPCodedPicture, to target: WebPTarget) throws(CodingError) {
        self.decoder = try WebPPictureDecoder(picture, to: target)
    }

    var rowCount: Int { self.decoder.rowCount }

    func advance(through bytes: UnsafeRawBufferPointer, work: DecodeWork) throws -> VP8StatusCode {
        var status = VP8_STATUS_SUSPENDED
        while status == VP8_STATUS_SUSPENDED, self.end < bytes.count {
            let before = self.end
            self.end = min(bytes.count, before + Self.step)
            try work.count(bytes: self.end - before)
            status = try self.decoder.update(UnsafeRawBufferPointer(rebasing: bytes[..<self.end]), work: work)
        }
        return status
    }
}

private final class LosslessRows: GrowingRows {
    private let target: WebPTarget
    private let isOpaque: Bool
    private var decoder: VP8LDecoder

    init(_ picture: WebPCodedPicture, to target: WebPTarget) {
        self.target = target
        self.isOpaque = !picture.frame.hasAlpha
        self.decoder = VP8LDecoder(width: target.width, height: target.height)
    }

    var rowCount: Int { self.decoder.row }

    func advance(through bytes: UnsafeRawBufferPointer, work: DecodeWork) throws -> VP8StatusCode {
        let stream = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(WebPChunk.headByteCount))
        do {
            while self.decoder.row < self.target.height {
                try self.decoder.readRow(
                    to: self.target.base + self.decoder.row * self.target.bytesPerRow,
                    hasAlpha: self.target.hasAlpha,
                    isOpaque: self.isOpaque,
                    from: stream,
                    work: work
                )
            }
            return VP8_STATUS_OK
        } catch let error as VP8LError {
            switch error {
            case .needsBytes: return VP8_STATUS_SUSPENDED
            case .damaged: return VP8_STATUS_BITSTREAM_ERROR
            case .tooManyCodes, .noMemory: throw CodingError(error)
            }
        }
    }
}

/// Memory for all rows of a picture: zero at first, so that it takes room only where it was written.
private struct WebPRowMemory: ~Copyable {
    let bytes: UnsafeMutableRawBufferPointer

    /// Allocates it, or `nil` where the system refuses.
    init?(byteCount: Int) {
        guard let base = calloc(byteCount, 1) else { return nil }
        self.bytes = UnsafeMutableRawBufferPointer(start: base, count: byteCount)
    }

    deinit {
        free(self.bytes.baseAddress)
    }
}
