import FoundationEssentials
import TintypeImage

/// Reads the images of an animated GIF, each by itself.
///
/// Images are cut at the edge of the screen; one that lies wholly beyond it is a transparent pixel.
struct GIFFrameReader: CanvasFrameReader {
    private let file: GIFFile
    let frames: [AnimationFrame]

    /// Lists the images; decodes nothing.
    init(_ file: GIFFile) {
        let (width, height) = (file.stream.width, file.stream.height)
        self.frames = file.stream.frames.map { frame in
            let visible = frame.visibleSize(width: width, height: height)
            guard visible.width > 0, visible.height > 0 else {
                return AnimationFrame(left: 0, top: 0, width: 1, height: 1)
            }
            return AnimationFrame(
                left: Int(frame.left),
                top: Int(frame.top),
                width: visible.width,
                height: visible.height,
                disposal: frame.disposal,
                hasAlpha: frame.hasTransparency || file.options.allowsTruncated
            )
        }
        self.file = file
    }

    var canvas: PixelSize { PixelSize(width: self.file.stream.width, height: self.file.stream.height) }

    /// A frame may have holes where its file is damaged, and then says that it has alpha.
    var fillsOpaqueFrames: Bool { true }

    func pixels(of index: Int) throws -> PixelBuffer {
        try self.pixels(of: index, work: DecodeWork(self.file.options.limits, format: .gif))
    }

    func pixels(of index: Int, work: DecodeWork) throws -> PixelBuffer {
        try self.checkFrame(index)
        return try self.file.pixels(of: index, work: work)
    }

    func draw(_ index: Int, on canvas: FrameCanvas, work: DecodeWork) throws -> Bool {
        try self.checkFrame(index)
        try self.file.draw(index, on: canvas, work: work)
        return true
    }

    private func checkFrame(_ index: Int) throws(CodingError) {
        guard !self.frames.indices.contains(index) else { return }
        throw CodingError(
            code: .invalidOptions,
            message: "There is no frame \(index): the picture has \(self.frames.count), from 0 on.",
            format: .gif
        )
    }
}
