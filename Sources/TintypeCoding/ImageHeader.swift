public import FoundationEssentials
public import TintypeImage

/// What the start of a file says about its picture, without decoding pixels.
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
    /// What a still picture is decoded to; `nil` where the coder does not say, and it is taken for `rgba8` where there
    /// may be alpha and for `rgb8` elsewhere.
    ///
    /// Frames of an animation are `rgba8`.
    public var pixelFormat: PixelFormat?
    /// The frames and their timing; one frame for stills.
    public var animation = AnimationTiming()
    /// Whether the coder gives the rows of the picture one by one, so that it is never there whole.
    ///
    /// Where it says so and does not, a thumbnail takes more memory than it is weighed by.
    public var givesRows = false
    /// The bytes that the codec itself needs while it decodes, besides the pixels it gives out.
    public var codecByteCount = 0
    /// The bytes that the codec needs while it gives rows one by one, where it is another number.
    public var codecByteCountForRows: Int?
    /// The bytes that the codec needs while it draws frames, with those of the frames themselves and of what they cover
    /// and give back; `nil` is as many as the canvas takes, and ``codecByteCount``.
    public var codecByteCountForFrames: Int?

    /// What ``codecByteCount`` is for the first frame of an animation alone, where it is another number.
    var firstFrameCodecByteCount: Int?
    /// Whether the coder decodes to smaller sizes, where it ever does.
    var isScaledByCodec = true
    /// Whether samples are in sRGB as they come from the codec, although there is a profile.
    var isConvertedByCodec = false
    /// What a decode that allows missing ends gives out, where it is another format.
    var pixelFormatWithHoles: PixelFormat?
    /// What previews have, where it is another format.
    var pixelFormatOfPreviews: PixelFormat?
    /// The bytes of the largest part of an animation's canvas that is kept while a frame is shown over it.
    var restoredByteCount = 0

    /// Describes a picture of a size; set the rest as it is found.
    public init(format: ImageFormat, pixelWidth: Int, pixelHeight: Int) {
        self.format = format
        self.pixelWidth = pixelWidth
        self.pixelHeight = pixelHeight
    }

    /// The width and height of the upright picture.
    public var uprightSize: (width: Int, height: Int) {
        self.orientation.uprightSize(width: self.pixelWidth, height: self.pixelHeight)
    }
}

extension ImageHeader {
    /// The format of what a decode gives out.
    var decodedFormat: PixelFormat {
        // Frames of an animation are drawn on a canvas with alpha.
        guard self.animation.durations.isEmpty else { return .rgba8 }
        return self.pixelFormat ?? (self.hasAlpha ? .rgba8 : .rgb8)
    }

    /// The bytes of a picture of a size, rows padded; what no layout holds is `Int.max`.
    func byteCount(of size: PixelSize, as format: PixelFormat) -> Int {
        (try? PixelLayout(format: format, width: max(1, size.width), height: max(1, size.height)))?.byteCount ?? .max
    }
}

/// How many frames a picture has and how long each is shown.
public struct AnimationTiming: Sendable, Hashable {
    /// The shortest delay that is taken as meant; shorter ones become ``replacementDuration``.
    static let shortestDuration = 11
    /// What browsers show for delays that are too short to be meant, in milliseconds.
    static let replacementDuration = 100

    /// How often the frames are shown, as stored: 0 is forever, 1 for stills.
    public var loopCount = 1
    /// Milliseconds that each frame is shown; empty for stills.
    public var durations: [Int] = []

    /// Creates the timing of a still picture.
    public init() {}

    /// The number of frames: 1 for stills.
    public var frameCount: Int { max(1, self.durations.count) }

    /// Adds a frame that is stored with a delay of `milliseconds`.
    ///
    /// Under 11 ms becomes 100 ms, as in browsers: such files were made for old viewers
    /// that could not draw faster.
    mutating func appendFrame(milliseconds: Int) {
        self.durations.append(Self.shownDuration(milliseconds))
    }

    /// How long a frame is shown that is stored with a delay of `milliseconds`.
    static func shownDuration(_ milliseconds: Int) -> Int {
        milliseconds < Self.shortestDuration ? Self.replacementDuration : milliseconds
    }
}
