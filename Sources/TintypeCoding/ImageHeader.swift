public import FoundationEssentials
public import TintypeImage

/// What the start of a file says about its image, without decoding pixels.
public struct ImageHeader: Sendable {
    /// The encoded format.
    public var format: ImageFormat
    /// The width as stored.
    public var pixelWidth: Int
    /// The height as stored.
    public var pixelHeight: Int
    /// The turn that makes the stored pixels upright.
    public var orientation: Orientation = .up
    /// Whether the format and its chunks announce transparency.
    public var hasAlpha = false
    /// The bits of one stored sample.
    public var bitDepth = 8
    /// The embedded ICC profile as stored.
    public var colorProfile: Data?
    /// The frames and their timing; one frame for stills.
    public var animation = AnimationTiming()

    /// Describes an image of a size; set the rest as it is found.
    public init(format: ImageFormat, pixelWidth: Int, pixelHeight: Int) {
        self.format = format
        self.pixelWidth = pixelWidth
        self.pixelHeight = pixelHeight
    }

    /// The width and height of the upright image.
    public var uprightSize: (width: Int, height: Int) {
        self.orientation.uprightSize(width: self.pixelWidth, height: self.pixelHeight)
    }

    /// How an image of the stored size lies in memory.
    func layout(as format: PixelFormat) throws(ImageError) -> PixelLayout {
        try PixelLayout(format: format, width: self.pixelWidth, height: self.pixelHeight)
    }

    /// Whether samples are brought to sRGB by the embedded profile after a decode: four inks are mixed by the codec.
    ///
    /// Source: ICC.1:2022, 7.2.8 (data colour space).
    package func isConverted(_ options: DecodeOptions) -> Bool {
        guard let profile = self.colorProfile, case .convert = options.color else { return false }
        return !profile.has("CMYK", at: 16)
    }

    /// Brings the samples of a stored image, perhaps resized, to sRGB and turns it upright.
    ///
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    package func finish(_ image: consuming Image, options: DecodeOptions, turnsUpright: Bool = true) throws -> Image {
        var image = image
        if let profile = self.colorProfile {
            switch options.color {
            case .convert(let intent):
                let converted = try ColorConverter.shared.convert(image.pixels, from: profile, intent: intent)
                image = image.replacingPixels(converted, orientation: image.orientation)
            case .keep:
                // CMYK was mixed to RGB, which its profile knows nothing of.
                if LittleCMSProfile.matches(profile, image.pixels.format) {
                    image = image.tagged(with: ColorProfile(data: profile))
                }
            case .ignore: break
            }
        }
        try Task.checkCancellation()
        image = image.replacingScale(options.scale)
        return turnsUpright ? try image.upright() : image
    }

    /// The bytes of an image and its copies while it is brought to sRGB and turned upright.
    ///
    /// - Parameters:
    ///   - picture: The bytes of the image.
    ///   - format: The format of its pixels.
    ///   - orientation: How it is turned; `nil` is as the header says.
    ///   - options: The options of the decode.
    /// - Returns: The bytes.
    package func finishingByteCount(
        of picture: Int,
        as format: PixelFormat,
        orientation: Orientation? = nil,
        options: DecodeOptions
    ) -> Int {
        var converted = picture
        var most = picture
        if self.isConverted(options) {
            // Gray of a profile for colours becomes colour before.
            let isGray = format == .gray8
            converted = picture.saturatingMultiplied(by: isGray ? 3 : 1)
            most = picture.saturatingAdded(to: converted).saturatingAdded(to: isGray ? converted : 0)
        }
        // One copy for the turn, of what a conversion left.
        let turned = (orientation ?? self.orientation) == .up ? 0 : converted.saturatingMultiplied(by: 2)
        return max(most, turned)
    }
}

/// How many frames an image has and how long each is shown.
public struct AnimationTiming: Sendable, Hashable {
    /// The shortest delay that is taken as meant; shorter ones become ``replacementDuration``.
    static let shortestDuration = 11
    /// What browsers show for delays that are too short to be meant, in milliseconds.
    static let replacementDuration = 100

    /// How often the frames are shown, as stored: 0 is forever, 1 for stills.
    public var loopCount = 1
    /// Milliseconds that each frame is shown; empty for stills.
    public var durations: [Int] = []

    /// Creates the timing of a still image.
    public init() {}

    /// The number of frames: 1 for stills.
    public var frameCount: Int { max(1, self.durations.count) }

    /// How long all frames are shown once, in milliseconds; 0 for stills.
    public var totalDuration: Int { self.durations.reduce(0) { $0.saturatingAdded(to: max(0, $1)) } }

    /// Adds a frame that is stored with a delay of `milliseconds`.
    ///
    /// Under 11 ms becomes 100 ms, as in browsers: such files were made for old viewers
    /// that could not draw faster.
    mutating func appendFrame(milliseconds: Int) {
        self.durations.append(Self.shownDuration(milliseconds))
    }

    /// How long a frame is shown that is stored with a delay of `milliseconds`.
    package static func shownDuration(_ milliseconds: Int) -> Int {
        milliseconds < Self.shortestDuration ? Self.replacementDuration : milliseconds
    }
}
