/// How stored pixels must be turned to be upright: the EXIF tag 0x0112.
///
/// Source: Exif 2.32, section 4.6.4, "Orientation".
public enum Orientation: UInt8, Sendable, Hashable, CaseIterable {
    /// As stored.
    case up = 1
    /// Mirrored left to right.
    case upMirrored = 2
    /// Turned by 180 degrees.
    case down = 3
    /// Mirrored top to bottom.
    case downMirrored = 4
    /// Mirrored along the diagonal from top left to bottom right.
    case leftMirrored = 5
    /// To be turned clockwise by 90 degrees.
    case right = 6
    /// Mirrored along the diagonal from top right to bottom left.
    case rightMirrored = 7
    /// To be turned counterclockwise by 90 degrees.
    case left = 8

    /// Whether width and height change places when the picture is turned upright.
    public var swapsSides: Bool { self.rawValue >= 5 }

    /// The size of the upright picture, of one that is stored as `width` by `height`.
    public func uprightSize(width: Int, height: Int) -> (width: Int, height: Int) {
        self.swapsSides ? (height, width) : (width, height)
    }
}
