// SPDX-License-Identifier: Apache-2.0

#if WebP
import CTintypeWebP
import FoundationEssentials
import TintypeImage

/// Decodes a WebP while its bytes arrive: a still image row by row; for an animation, its first frame.
///
/// libwebp resumes its decode with each call. Only the header of a lossless image is read again, each time that the
/// number of bytes has doubled. If the options name a frame other than the first, it is decoded at the end.
final class WebPIncrementalDecoder: IncrementalDecoder {
    private let options: DecodeOptions
    private var data = Data()
    private var container: WebPContainer
    /// The work of all calls together, including previews.
    private let work: DecodeWork
    private var canvas: WebPGrowingCanvas?
    private var shownRowCount = 0
    /// Whether the header was read and is within the limits.
    private var isChecked = false

    init(options: DecodeOptions) {
        self.options = options
        self.container = WebPContainer(limits: options.limits)
        self.work = DecodeWork(options.limits, format: .webp)
    }

    var header: ImageHeader? { self.isChecked ? self.container.header : nil }

    var workDone: Int { self.work.spent }
    var previewUnits: Int { self.canvas?.copyUnits ?? 0 }

    func append(_ bytes: Data) throws {
        try Task.checkCancellation()
        self.data.append(bytes)
        try self.options.limits.check(self.data)
        try self.data.withUnsafeBytes { try self.container.scan($0, work: self.work) }
        guard let first = self.container.images.first, let size = self.container.size else {
            if let damage = self.container.damage { throw CodingError.corrupt(.webp, damage) }
            return
        }
        if !self.isChecked {
            if let header = self.container.header { try self.options.limits.check(header) }
            self.isChecked = true
        }
        if self.canvas == nil {
            self.canvas = try WebPGrowingCanvas(
                first,
                canvas: self.container.isAnimated ? size : nil,
                sufficientSize: self.options.sufficientSize
            )
        }
        try self.data.withUnsafeBytes { bytes in
            let coded = UnsafeRawBufferPointer(rebasing: bytes[first.bytes])
            try self.canvas?.update(coded, of: first, work: self.work)
        }
        guard !self.options.allowsTruncated else { return }
        try self.canvas?.checkDamage()
        if let damage = self.container.damage { throw CodingError.corrupt(.webp, damage) }
    }

    func preview() throws -> Image? {
        guard self.options.frame == 0, let canvas = self.canvas, canvas.rowCount > self.shownRowCount else {
            return nil
        }
        self.shownRowCount = canvas.rowCount
        return self.image(try canvas.pixels(work: self.work))
    }

    func finish() throws -> DecodedImage {
        try Task.checkCancellation()
        let error = self.container.error(byteCount: self.data.count)
        guard let canvas = self.canvas else { throw error ?? .truncated(.webp) }
        if let error, !self.options.allowsTruncated { throw error }
        guard self.container.isAnimated, self.options.frame != 0 else {
            try canvas.check(allowsTruncated: self.options.allowsTruncated)
            return DecodedImage(self.image(try canvas.pixels(work: self.work)))
        }
        return try EncodedWebP(self.data, self.container).decode(options: self.options)
    }

    private func image(_ pixels: PixelBuffer) -> Image {
        Image(pixels: pixels, orientation: self.container.orientation, sourceFormat: .webp)
    }
}

/// The decoded rows of an incomplete image, and their place on the canvas.
final class WebPGrowingCanvas {
    private let decoder: any WebPRows
    /// The memory that the decoder writes to.
    private let rows: AlignedMemory
    private let rowLayout: PixelLayout
    private let layout: PixelLayout
    private let frame: AnimationFrame
    private let isLossless: Bool
    private var status = VP8_STATUS_SUSPENDED
    private var seenByteCount = 0
    /// The number of complete rows of the image.
    private(set) var rowCount = 0

    /// Allocates the memory for an image.
    ///
    /// - Parameters:
    ///   - image: The still image or the frame.
    ///   - canvas: The size of an animation's canvas; `nil` for a still image.
    ///   - sufficientSize: The size to which a still image may be scaled down.
    /// - Throws: `CodingError`, `ImageError` when memory runs out.
    init(_ image: WebPCodedImage, canvas: PixelSize?, sufficientSize: PixelSize?) throws {
        let stored = PixelSize(width: image.frame.width, height: image.frame.height)
        if let canvas {
            self.layout = try PixelLayout(format: .rgba8, width: canvas.width, height: canvas.height)
            self.rowLayout = try PixelLayout(format: .rgba8, width: stored.width, height: stored.height)
        } else {
            self.layout = try image.layout(sufficientSize: sufficientSize)
            self.rowLayout = self.layout
        }
        let rows = try AlignedMemory(zeroedByteCount: self.rowLayout.byteCount)
        guard let target = WebPTarget(rows.bytes, layout: self.rowLayout) else { throw CodingError.outOfMemory(.webp) }
        self.decoder = try WebPDecompressor.rows(of: image, to: target)
        self.rows = rows
        self.frame = image.frame
        self.isLossless = image.isLossless
    }

    /// Decodes as far as `bytes` go, which are the bytes of the image from its first one.
    ///
    /// - Throws: `CodingError.Code.tooMuchWork`, `CancellationError`.
    func update(_ bytes: UnsafeRawBufferPointer, of image: WebPCodedImage, work: DecodeWork) throws {
        guard self.status == VP8_STATUS_SUSPENDED, bytes.count > self.seenByteCount else { return }
        // The header of a lossless image is read from its start until all of it has arrived.
        let isWaiting = self.isLossless && self.rowCount == 0 && image.bytes.upperBound < image.end
        if isWaiting, bytes.count < 2 * self.seenByteCount { return }
        defer { self.rowCount = self.decoder.rowCount }
        self.status = try self.decoder.advance(through: bytes, work: work)
        self.seenByteCount = bytes.count
    }

    /// Throws unless all rows are decoded, or as many as possible if truncation is allowed.
    func check(allowsTruncated: Bool) throws(CodingError) {
        try WebPDecompressor.check(
            self.status,
            rowCount: self.rowCount,
            height: self.rowLayout.height,
            allowsTruncated: allowsTruncated
        )
    }

    /// Throws if the bit stream is damaged.
    func checkDamage() throws(CodingError) {
        if self.status == VP8_STATUS_SUSPENDED { return }
        try self.check(allowsTruncated: false)
    }

    /// The work of a copy.
    var copyUnits: Int {
        let rows = self.rowLayout.width * self.rowLayout.height / 4
        return self.layout == self.rowLayout ? rows : rows + self.layout.byteCount / 16
    }

    /// Returns a copy of the canvas with the rows decoded so far; the rest is zero.
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

    /// Writes the decoded rows to their place on the canvas.
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
#endif
