// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeImage

/// The properties of an image that the start of its file declares.
public struct ImageHeader: Sendable {
    /// The encoded format.
    public var format: ImageFormat
    /// The width in pixels, as stored.
    public var pixelWidth: Int
    /// The height in pixels, as stored.
    public var pixelHeight: Int
    /// The turn that makes the stored pixels upright; by default none.
    public var orientation: Orientation = .up
    /// Whether the format and its chunks declare transparency; `false` by default.
    public var hasAlpha = false
    /// The bits of one stored sample; 8 by default.
    public var bitDepth = 8
    /// The embedded ICC profile as stored, or `nil` if the file has no profile.
    public var colorProfile: Data?
    /// The frames and their timing; one frame for a still image.
    public var animation = AnimationTiming()

    /// Creates a header with an image's format and size.
    ///
    /// Set the other properties as the coder finds them.
    ///
    /// ```swift
    /// var header = ImageHeader(format: .png, pixelWidth: 800, pixelHeight: 600)
    /// header.hasAlpha = true
    /// ```
    public init(format: ImageFormat, pixelWidth: Int, pixelHeight: Int) {
        self.format = format
        self.pixelWidth = pixelWidth
        self.pixelHeight = pixelHeight
    }

    /// The width and height of the upright image.
    public var uprightSize: (width: Int, height: Int) {
        self.orientation.uprightSize(width: self.pixelWidth, height: self.pixelHeight)
    }

    /// Returns the memory layout of an image of the stored size.
    func layout(as format: PixelFormat) throws(ImageError) -> PixelLayout {
        try PixelLayout(format: format, width: self.pixelWidth, height: self.pixelHeight)
    }

    /// Returns whether a decode converts the samples to sRGB with the embedded profile.
    ///
    /// For CMYK the codec does the conversion itself. Source: ICC.1:2022, 7.2.8 (data colour space).
    package func isConverted(_ options: DecodeOptions) -> Bool {
        guard let profile = self.colorProfile, case .convert = options.color else { return false }
        return !profile.has("CMYK", at: 16)
    }

    /// Converts the samples of a stored image, resized or not, to sRGB and turns it upright.
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
                // The codec converted CMYK to RGB, so the CMYK profile no longer describes the samples.
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

    /// Returns the bytes of an image and its copies while it is converted to sRGB and turned upright.
    ///
    /// - Parameters:
    ///   - image: The bytes of the image.
    ///   - format: The format of its pixels.
    ///   - orientation: The turn; `nil` takes the header's.
    ///   - options: The options of the decode.
    /// - Returns: The bytes.
    package func finishingByteCount(
        of image: Int,
        as format: PixelFormat,
        orientation: Orientation? = nil,
        options: DecodeOptions
    ) -> Int {
        var converted = image
        var most = image
        if self.isConverted(options) {
            // A gray image whose profile is for RGB is converted to `rgb8` first.
            let isGray = format == .gray8
            converted = image.saturatingMultiplied(by: isGray ? 3 : 1)
            most = image.saturatingAdded(to: converted).saturatingAdded(to: isGray ? converted : 0)
        }
        // The turn makes one copy of the converted image.
        let turned = (orientation ?? self.orientation) == .up ? 0 : converted.saturatingMultiplied(by: 2)
        return max(most, turned)
    }
}

/// The number of frames of an image and how long each is shown.
public struct AnimationTiming: Sendable, Hashable {
    /// The shortest delay in milliseconds that is taken as intended; shorter ones become ``replacementDuration``.
    static let shortestDuration = 11
    /// The milliseconds that browsers show a frame whose delay is too short to be intended.
    static let replacementDuration = 100

    /// How often the frames are shown, as stored: 0 is forever, 1 for still images.
    public var loopCount = 1
    /// The milliseconds that each frame is shown; empty for still images.
    public var durations: [Int] = []

    /// Creates the timing of a still image.
    ///
    /// ```swift
    /// var timing = AnimationTiming()
    /// timing.durations = [100, 100, 500]
    /// print(timing.frameCount)  // 3
    /// ```
    public init() {}

    /// The number of frames: 1 for still images.
    public var frameCount: Int { max(1, self.durations.count) }

    /// How long one pass through all frames takes, in milliseconds; 0 for still images.
    public var totalDuration: Int { self.durations.reduce(0) { $0.saturatingAdded(to: max(0, $1)) } }

    /// Adds a frame that is stored with a delay of `milliseconds`.
    ///
    /// A delay under 11 ms becomes 100 ms, as in browsers: such files were made for old viewers that could not draw
    /// faster.
    mutating func appendFrame(milliseconds: Int) {
        self.durations.append(Self.shownDuration(milliseconds))
    }

    /// Returns how long a frame with a stored delay of `milliseconds` is shown, in milliseconds.
    package static func shownDuration(_ milliseconds: Int) -> Int {
        milliseconds < Self.shortestDuration ? Self.replacementDuration : milliseconds
    }
}
