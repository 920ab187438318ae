// SPDX-License-Identifier: Apache-2.0

#if WebP
import FoundationEssentials
import TintypeImage

/// The frames of an animated WebP, each decoded from its own part of the file.
final class WebPFrameReader: CanvasFrameReader {
    let canvas: PixelSize
    let frames: [AnimationFrame]
    private let images: [WebPCodedImage]
    private let data: Data
    private let options: DecodeOptions

    init(_ data: Data, _ container: WebPContainer, canvas: PixelSize, options: DecodeOptions) {
        self.data = data
        self.canvas = canvas
        self.images = container.images
        var frames = container.images.map(\.frame)
        // On an empty canvas both ways to blend look the same. Like libwebp, use the one that keeps hidden colours.
        if !frames.isEmpty { frames[0].blend = .source }
        self.frames = frames
        self.options = options
    }

    /// `false` if truncation is allowed, because the missing part of a damaged frame is not written.
    var fillsOpaqueFrames: Bool { !self.options.allowsTruncated }

    func pixels(of index: Int) throws -> PixelBuffer {
        try self.pixels(of: index, work: DecodeWork(self.options.limits, format: .webp))
    }

    func pixels(of index: Int, work: DecodeWork) throws -> PixelBuffer {
        let image = self.images[index]
        let layout = try PixelLayout(format: .rgba8, width: image.frame.width, height: image.frame.height)
        return try self.data.withUnsafeBytes { bytes in
            let allowsTruncated = self.options.allowsTruncated
            let source = WebPSource(image, of: bytes, allowsTruncated: allowsTruncated, work: work)
            return try WebPDecompressor.decompress(source, layout: layout)
        }
    }

    func draw(_ index: Int, on canvas: FrameCanvas, work: DecodeWork) throws -> Bool {
        let image = self.images[index]
        // The missing part of a damaged frame would not replace the canvas.
        guard index == 0 || image.isDrawnDirectly, !self.options.allowsTruncated else { return false }
        try self.data.withUnsafeBytes { bytes in
            let source = WebPSource(image, of: bytes, allowsTruncated: false, work: work)
            try WebPDecompressor.decompress(source, to: WebPTarget(canvas, frame: image.frame))
        }
        return true
    }
}
#endif
