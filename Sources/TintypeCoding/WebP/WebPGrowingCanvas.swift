import CWebP
import TintypeImage

/// The rows of a picture that is still being decoded, and where they lie on the canvas.
final class WebPGrowingCanvas {
    private let decoder: WebPPictureDecoder
    /// The memory that the decoder writes to; zero at first.
    private let rows: WebPRowWindow
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
        guard let rows = WebPRowWindow(byteCount: self.rowLayout.byteCount) else {
            throw CodingError.outOfMemory(.webp)
        }
        self.decoder = try WebPPictureDecoder(picture, to: rows.bytes, layout: self.rowLayout)
        self.rows = rows
        self.frame = picture.frame
        self.isLossless = picture.isLossless
    }

    /// Decodes as far as `bytes` go, those of the picture from its first one on.
    func update(_ bytes: UnsafeRawBufferPointer, of picture: WebPCodedPicture) {
        guard self.status == VP8_STATUS_SUSPENDED, bytes.count > self.seenByteCount else { return }
        // A lossless picture's header is read from its start until all of it is there.
        let isWaiting = self.isLossless && self.rowCount == 0 && picture.bytes.upperBound < picture.end
        if isWaiting, bytes.count < self.seenByteCount + self.seenByteCount / 4 { return }
        self.status = self.decoder.update(bytes)
        self.rowCount = self.decoder.rowCount
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
    func pixels() throws -> PixelBuffer {
        try PixelBuffer(
            self.layout,
            fillingUnsafely: { target in
                if self.layout == self.rowLayout, !self.isDenied {
                    let known = self.rowCount * self.layout.planes[0].bytesPerRow
                    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: self.rows.bytes[..<known]))
                    UnsafeMutableRawBufferPointer(rebasing: target[known...])
                        .initializeMemory(as: UInt8.self, repeating: 0)
                } else {
                    target.initializeMemory(as: UInt8.self, repeating: 0)
                    self.place(on: target)
                }
            }
        )
    }

    /// Whether the bit stream says that there is no alpha, but may hold some all the same.
    private var isDenied: Bool { self.isLossless && !self.frame.hasAlpha && self.layout.format.hasAlpha }

    /// Writes the known rows to where they lie on the canvas.
    private func place(on target: UnsafeMutableRawBufferPointer) {
        let plane = self.rowLayout.planes[0]
        let bytesPerRow = self.layout.planes[0].bytesPerRow
        let start = self.frame.top * bytesPerRow + self.frame.left * self.layout.format.channelCount
        for row in 0..<self.rowCount {
            let from = row * plane.bytesPerRow
            let to = UnsafeMutableRawBufferPointer(
                rebasing: target[(start + row * bytesPerRow)...].prefix(plane.usedBytesPerRow)
            )
            to.copyMemory(
                from: UnsafeRawBufferPointer(rebasing: self.rows.bytes[from..<from + plane.usedBytesPerRow])
            )
            guard self.isDenied else { continue }
            for alpha in stride(from: 3, to: to.count, by: 4) { to[alpha] = 255 }
        }
    }
}
