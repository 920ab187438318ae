import FoundationEssentials
import TintypeImage

/// Decodes the first picture of a GIF while its bytes arrive: rows, or passes of an interlaced one.
final class GIFIncrementalDecoder: IncrementalDecoder {
    private let options: DecodeOptions
    private var data = Data()
    private var stream: GIFStream
    /// Of all pieces together, previews included.
    private let work: DecodeWork
    private var canvas: GIFCanvas?
    private(set) var header: ImageHeader?
    private var hasNews = false

    /// Prepares to decode a file from its start.
    init(options: DecodeOptions) {
        self.options = options
        self.stream = GIFStream(limits: options.limits)
        self.work = DecodeWork(options.limits, format: .gif)
    }

    var workDone: Int { self.work.spent }

    func append(_ bytes: Data) throws {
        try Task.checkCancellation()
        self.data.append(bytes)
        try self.options.limits.check(self.data)
        let frameCount = self.stream.frames.count
        try self.stream.advance(through: self.data, work: self.work)
        guard self.stream.hasScreen else { return }
        if self.header == nil || self.stream.frames.count > frameCount {
            let header = ImageHeader(self.stream)
            try self.options.limits.check(header)
            // What a picture shows is not known before its first image.
            if frameCount == 0, let frame = self.stream.frames.first {
                try GIFFile.check(frame, limits: self.options.limits)
                self.canvas = try GIFCanvas(self.stream, frame, in: self.data)
            }
            if !self.stream.frames.isEmpty { self.header = header }
        }
        guard let canvas else { return }
        if try canvas.advance(through: self.data, work: self.work) { self.hasNews = true }
        if !self.options.allowsTruncated { try canvas.checkCodes() }
    }

    func preview() throws -> Image? {
        guard self.hasNews, let canvas else { return nil }
        self.hasNews = false
        return Image(pixels: try canvas.pixels(as: .rgba8, work: self.work), sourceFormat: .gif)
    }

    func finish() throws -> DecodedImage {
        try GIFFile.check(self.stream, byteCount: self.data.count, options: self.options)
        guard let canvas else { throw CodingError.truncated(.gif) }
        let isWhole = try canvas.finish(
            with: self.data,
            allowsTruncated: self.options.allowsTruncated,
            work: self.work
        )
        let pixels = try canvas.pixels(as: isWhole ? PixelFormat.gif(self.stream) : .rgba8, work: self.work)
        return DecodedImage(Image(pixels: pixels, sourceFormat: .gif))
    }
}
