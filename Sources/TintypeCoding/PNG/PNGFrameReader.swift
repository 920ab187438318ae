import FoundationEssentials
import TintypeImage

/// The frames of an APNG, each decoded by itself when it is asked for.
struct PNGFrameReader: FrameReader {
    let canvas: PixelSize
    let frames: [AnimationFrame]
    private let data: Data
    private let header: PNGHeader
    private let animation: PNGAnimation
    private let isLenient: Bool
    private let limits: DecodingLimits

    init(_ data: Data, _ header: PNGHeader, _ animation: PNGAnimation, options: DecodeOptions) {
        self.canvas = PixelSize(width: header.layout.width, height: header.layout.height)
        self.frames = animation.frames.indices.map { animation.frame(at: $0, hasAlpha: header.hasAlpha) }
        self.data = data
        self.header = header
        self.animation = animation
        self.isLenient = options.allowsTruncated
        self.limits = options.limits
    }

    func pixels(of index: Int) throws -> PixelBuffer {
        try self.pixels(of: index, work: DecodeWork(self.limits, format: .png))
    }

    func pixels(of index: Int, work: DecodeWork) throws -> PixelBuffer {
        let size = PixelSize(width: self.frames[index].width, height: self.frames[index].height)
        return try self.data.withUnsafeBytes { bytes in
            try PNGDecompressor(bytes, header: self.header, output: .rgba8, isLenient: self.isLenient, work: work)
                .decompress(frameAt: self.animation.frames[index].pixelsOffset, size: size)
        }
    }
}
