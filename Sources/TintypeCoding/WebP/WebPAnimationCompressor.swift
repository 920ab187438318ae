import CWebP
import FoundationEssentials
import TintypeImage

/// Encodes animations with libwebp's animation encoder, which stores what changes from frame to frame.
///
/// Equal frames that follow each other become one that is shown as long as all of them.
struct WebPAnimationCompressor {
    private let options: EncodeOptions

    init(_ options: EncodeOptions) {
        self.options = options
    }

    func compress(_ animation: AnimationContent) throws -> Data {
        guard let first = try animation.frames.first?.image.upright() else {
            throw CodingError.webpEncoding("an animation needs a frame")
        }
        guard (0...0xFFFF).contains(animation.loopCount) else {
            throw CodingError.webpEncoding("a loop count may be at most 65535")
        }
        let quality = self.options.webpQuality
        let size = PixelSize(width: first.width, height: first.height)
        let whole = try self.compress(animation, size: size, quality: quality)
        guard let limit = self.options.maximumByteCount, whole.count > limit else { return whole }
        guard !self.options.compression.isLossless else {
            throw CodingError.webpEncoding("without loss it takes \(whole.count) bytes of \(limit); choose lossy")
        }
        return try WebPCompressor.largest(within: limit, below: quality) { quality in
            try self.compress(animation, size: size, quality: quality)
        }
    }

    private func compress(_ animation: AnimationContent, size: PixelSize, quality: Int) throws -> Data {
        let encoder = try WebPAnimationEncoder(size, loopCount: animation.loopCount)
        var config = try self.options.webpConfig(quality: quality)
        for frame in animation.frames {
            try Task.checkCancellation()
            let image = try frame.image.upright()
            guard (image.width, image.height) == (size.width, size.height) else {
                throw CodingError.webpEncoding("all frames must have the size of the first")
            }
            let picture = try WebPSourcePicture(image.pixels, isLossless: true)
            try encoder.add(picture, milliseconds: frame.milliseconds, &config)
        }
        return try WebPMetadata.add(self.options.metadata, to: try encoder.finish())
    }
}
