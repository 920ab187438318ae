import FoundationEssentials
import TintypeImage

/// The frames of an animated WebP, each decoded from its own part of the file.
final class WebPFrameReader: FrameReader {
    let canvas: PixelSize
    let frames: [AnimationFrame]
    private let pictures: [WebPCodedPicture]
    private let data: Data
    private let allowsTruncated: Bool

    init(_ data: Data, _ container: WebPContainer, canvas: PixelSize, allowsTruncated: Bool) {
        self.data = data
        self.canvas = canvas
        self.pictures = container.pictures
        var frames = container.pictures.map(\.frame)
        // On an empty canvas both ways to blend look the same, and this one keeps hidden colours, as libwebp does.
        if !frames.isEmpty { frames[0].blend = .source }
        self.frames = frames
        self.allowsTruncated = allowsTruncated
    }

    func pixels(of index: Int) throws -> PixelBuffer {
        let picture = self.pictures[index]
        let layout = try PixelLayout(format: .rgba8, width: picture.frame.width, height: picture.frame.height)
        return try self.data.withUnsafeBytes { bytes in
            try WebPDecompressor.decompress(
                picture,
                of: bytes,
                layout: layout,
                allowsTruncated: self.allowsTruncated
            )
        }
    }
}
