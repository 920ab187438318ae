public import TintypeImage

/// Reads the frames of one animation, each by itself; compositing is done for all formats alike.
///
/// Asked from one lane at a time. Opening one parses the frame list and decodes no pixels.
public protocol FrameReader: Sendable {
    /// The size of the canvas.
    var canvas: PixelSize { get }
    /// The frames in their order. They may reach over the canvas; compositing cuts them.
    var frames: [AnimationFrame] { get }

    /// The pixels of a frame's own area as `rgba8`, `width` by `height` of the frame.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func pixels(of index: Int) throws -> PixelBuffer

    /// The same, with its work counted.
    ///
    /// Left out, a frame counts as much as it has pixels.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func pixels(of index: Int, work: DecodeWork) throws -> PixelBuffer
}

extension FrameReader {
    public func pixels(of index: Int, work: DecodeWork) throws -> PixelBuffer {
        if self.frames.indices.contains(index) {
            let frame = self.frames[index]
            try work.count(max(0, frame.width).saturatingMultiplied(by: max(0, frame.height)))
        }
        return try self.pixels(of: index)
    }
}
