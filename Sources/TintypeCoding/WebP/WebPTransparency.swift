import TintypeImage

/// Whether an animation ever shows through: found from the frames' areas, pixels left out.
///
/// A frame without alpha that covers the canvas makes it opaque; one that replaces, or gives its area back, can make
/// it transparent again.
struct WebPTransparency {
    /// Whether the canvas is transparent somewhere while some frame is shown.
    private(set) var isSeen = false
    private var isOpaque = false
    /// The frame whose area is cleared before the next one is drawn.
    private var cleared: AnimationFrame?

    /// Looks at the next frame.
    mutating func draw(_ frame: AnimationFrame, canvas: PixelSize) {
        let area = AnimationFrame(left: 0, top: 0, width: canvas.width, height: canvas.height)
        if let cleared = self.cleared, frame.hasAlpha || !frame.covers(cleared) { self.isOpaque = false }
        if frame.hasAlpha {
            if frame.blend == .source { self.isOpaque = false }
        } else if frame.covers(area) {
            self.isOpaque = true
        }
        if !self.isOpaque { self.isSeen = true }
        self.cleared = frame.disposal == .background ? frame : nil
    }
}

extension AnimationFrame {
    /// Whether the area of `other` lies within that of this frame.
    fileprivate func covers(_ other: AnimationFrame) -> Bool {
        self.left <= other.left && self.top <= other.top && self.left + self.width >= other.left + other.width
            && self.top + self.height >= other.top + other.height
    }
}
