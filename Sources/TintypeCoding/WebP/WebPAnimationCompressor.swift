// SPDX-License-Identifier: Apache-2.0

#if WebP
import CTintypeWebP
import FoundationEssentials
import TintypeImage

/// Encodes animations with libwebp's animation encoder, which stores the changes from frame to frame.
///
/// Consecutive equal frames become one frame that is shown as long as all of them. Loop counts and durations for which
/// the format has no room become the largest for which it has.
struct WebPAnimationCompressor {
    let options: EncodeOptions

    func compress(_ animation: AnimationContent) throws -> Data {
        guard let first = try animation.frames.first?.image.upright() else {
            throw CodingError.webpEncoding("an animation needs a frame")
        }
        guard animation.loopCount >= 0 else { throw CodingError.webpEncoding("a loop count is negative") }
        let size = PixelSize(width: first.width, height: first.height)
        return try self.options.smallestWebP { try self.compress(animation, size: size, quality: $0) }
    }

    private func compress(_ animation: AnimationContent, size: PixelSize, quality: Int) throws -> Data {
        let encoder = try WebPAnimationEncoder(size, loopCount: animation.loopCount)
        var config = try self.options.webpConfig(quality: quality, hasAlpha: true)
        for frame in animation.frames {
            try Task.checkCancellation()
            let image = try frame.image.upright()
            guard (image.width, image.height) == (size.width, size.height) else {
                throw CodingError.webpEncoding("all frames must have the size of the first")
            }
            let source = try WebPSourceImage(image.pixels, isLossless: true)
            try encoder.add(source, milliseconds: frame.milliseconds, &config)
        }
        return try WebPMetadata.add(self.options.metadata, to: try encoder.finish())
    }
}

/// One libwebp animation encoder, which is freed with the object.
final class WebPAnimationEncoder {
    private let encoder: OpaquePointer
    /// When the next frame begins, in milliseconds.
    private var time = 0

    init(_ size: PixelSize, loopCount: Int) throws(CodingError) {
        guard max(size.width, size.height) <= WEBP_MAX_DIMENSION else {
            throw .webpEncoding("a side may have at most \(WEBP_MAX_DIMENSION) pixels")
        }
        var options = WebPAnimEncoderOptions()
        guard WebPAnimEncoderOptionsInit(&options) != 0 else { throw .webpEncoding("libwebp has another version") }
        options.anim_params.loop_count = CInt(min(loopCount, 0xFFFF))
        // Transparent, like the canvas of a decoder; the format's own default is white.
        options.anim_params.bgcolor = 0
        guard let encoder = WebPAnimEncoderNew(CInt(size.width), CInt(size.height), &options) else {
            throw .outOfMemory(.webp)
        }
        self.encoder = encoder
    }

    deinit {
        WebPAnimEncoderDelete(self.encoder)
    }

    func add(_ image: borrowing WebPSourceImage, milliseconds: Int, _ config: inout WebPConfig) throws {
        let isAdded = image.withImage { WebPAnimEncoderAdd(self.encoder, $0, CInt(self.time), &config) != 0 }
        guard isAdded else { throw try self.failure() }
        self.time = try Self.sum(self.time, milliseconds)
    }

    func finish() throws -> Data {
        var assembled = WebPData()
        guard WebPAnimEncoderAdd(self.encoder, nil, CInt(self.time), nil) != 0,
            WebPAnimEncoderAssemble(self.encoder, &assembled) != 0, let bytes = assembled.bytes
        else { throw try self.failure() }
        return Data(webp: bytes, count: assembled.size)
    }

    private static func sum(_ time: Int, _ milliseconds: Int) throws(CodingError) -> Int {
        guard milliseconds >= 0 else { throw .webpEncoding("the duration of a frame is negative") }
        // The format has 24 bits for a duration, and libwebp 31 for a moment.
        return min(time + min(milliseconds, (1 << 24) - 1), Int(CInt.max))
    }

    private func failure() throws -> CodingError {
        try Task.checkCancellation()
        let reason = WebPAnimEncoderGetError(self.encoder).map { String(cString: $0) } ?? "no reason given"
        return .webpEncoding("libwebp says \"\(reason)\"")
    }
}
#endif
