/// How a picture becomes bytes.
public struct EncodeOptions: Sendable, Hashable {
    /// The quality of lossy formats, 1 to 100; default 80.
    ///
    /// Lossless formats ignore it.
    public var quality: Int
    /// What transparent pixels are laid over in formats without alpha; default white.
    public var background: Color

    /// An opaque colour in sRGB.
    public struct Color: Sendable, Hashable {
        /// Red, 0 to 255.
        public var red: UInt8
        /// Green, 0 to 255.
        public var green: UInt8
        /// Blue, 0 to 255.
        public var blue: UInt8

        /// Creates a colour.
        public init(red: UInt8, green: UInt8, blue: UInt8) {
            self.red = red
            self.green = green
            self.blue = blue
        }

        /// White.
        public static let white = Color(red: 255, green: 255, blue: 255)
    }

    /// Options, by default for quality 80 over white.
    public init(quality: Int = 80, background: Color = .white) {
        self.quality = quality
        self.background = background
    }
}
