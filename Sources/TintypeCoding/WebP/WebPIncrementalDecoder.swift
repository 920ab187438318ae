import CWebP
import FoundationEssentials
import TintypeImage

/// Decodes a WebP while its bytes arrive: a still by rows, of an animation the first frame.
///
/// libwebp goes on where it stopped; only the header of a lossless picture is read again, each time that a quarter
/// more has arrived. Another frame than the first one is decoded at the end.
final class WebPIncrementalDecoder: IncrementalDecoder {
    private let options: DecodeOptions
    private var data = Data()
    private var container: WebPContainer
    /// Of all pieces together, previews included.
    private let work: DecodeWork
    private var canvas: WebPGrowingCanvas?
    private var shownRowCount = 0
    /// Whether the header was seen and is within the limits.
    private var isChecked = false

    init(options: DecodeOptions) {
        self.options = options
        self.container = WebPContainer(limits: options.limits)
        self.work = DecodeWork(options.limits, format: .webp)
    }

    var header: ImageHeader? { self.isChecked ? self.container.header : nil }

    var workDone: Int { self.work.spent }

    func append(_ bytes: Data) throws {
        try Task.checkCancellation()
        self.data.append(bytes)
        try self.options.limits.check(self.data)
        try self.data.withUnsafeBytes { try self.container.scan($0, work: self.work) }
        guard let first = self.container.pictures.first, let size = self.container.size else {
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
