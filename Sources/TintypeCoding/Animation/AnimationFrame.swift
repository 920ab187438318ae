public import TintypeImage

/// One frame of an animation as stored, before it is composited on the canvas.
public struct AnimationFrame: Sendable, Hashable {
    /// What happens to the frame's area after the frame was shown.
    public enum Disposal: Sendable, Hashable {
        /// It stays.
        case keep
        /// It becomes transparent.
        case background
        /// It becomes what it was before the frame was drawn.
        case previous
    }

    /// How the frame's pixels meet those of the canvas.
    public enum Blend: Sendable, Hashable {
        /// They replace them, transparency included.
        case source
        /// They are laid over them.
        case over
    }

    /// The column of the canvas where the frame begins.
    public var left: Int
    /// The row of the canvas where the frame begins.
    public var top: Int
    /// The width of the frame in pixels.
    public var width: Int
    /// The height of the frame in pixels.
    public var height: Int
    /// What happens to the frame's area afterwards.
    public var disposal: Disposal
    /// How the frame meets the canvas.
    public var blend: Blend
    /// Whether any pixel of the frame may be transparent.
    public var hasAlpha: Bool

    /// Describes a frame.
    public init(
        left: Int,
        top: Int,
        width: Int,
        height: Int,
        disposal: Disposal = .keep,
        blend: Blend = .over,
        hasAlpha: Bool = true
    ) {
        self.left = left
        self.top = top
        self.width = width
        self.height = height
        self.disposal = disposal
        self.blend = blend
        self.hasAlpha = hasAlpha
    }

    /// Whether the area of `other` lies within that of this frame.
    func covers(_ other: AnimationFrame) -> Bool {
        self.left <= other.left && self.top <= other.top
            && self.left.saturatingAdded(to: self.width) >= other.left + other.width
            && self.top.saturatingAdded(to: self.height) >= other.top + other.height
    }

    /// Whether all of a canvas lies within the area of the frame.
    func covers(_ canvas: PixelSize) -> Bool {
        self.covers(AnimationFrame(left: 0, top: 0, width: canvas.width, height: canvas.height))
    }
}

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
