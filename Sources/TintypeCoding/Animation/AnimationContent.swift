public import TintypeImage

/// An animation to be encoded: whole canvases and how long each is shown.
public struct AnimationContent: Sendable {
    /// One picture of the animation.
    public struct Frame: Sendable {
        /// The picture; all have the size of the first.
        public var image: Image
        /// How long it is shown.
        public var milliseconds: Int

        /// Creates a frame.
        public init(image: Image, milliseconds: Int) {
            self.image = image
            self.milliseconds = milliseconds
        }
    }

    /// The pictures in their order, at least one.
    public var frames: [Frame]
    /// How often they are shown; 0 is forever.
    public var loopCount: Int

    /// Creates an animation.
    public init(frames: [Frame], loopCount: Int = 0) {
        self.frames = frames
        self.loopCount = loopCount
    }
}
