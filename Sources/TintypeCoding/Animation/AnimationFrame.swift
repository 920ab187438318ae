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
}
