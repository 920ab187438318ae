// SPDX-License-Identifier: Apache-2.0

/// The processing options of an imgproxy URL, as far as imgproxy's open-source edition has them.
///
/// A new value has imgproxy's defaults, except that the limits are Tintype's.
package struct ProcessingOptions: Sendable, Hashable {
    // MARK: Size

    package var resizingType = ResizingType.fit
    /// The width in pixels; 0 if the height decides.
    package var width = 0
    /// The height in pixels; 0 if the width decides.
    package var height = 0
    /// The least width in pixels; 0 for no limit.
    package var minimumWidth = 0
    /// The least height in pixels; 0 for no limit.
    package var minimumHeight = 0
    package var horizontalZoom = 1.0
    package var verticalZoom = 1.0
    /// The pixels for each pixel of the size: `dpr`.
    package var pixelRatio = 1.0
    /// Whether a small image is enlarged.
    package var enlarges = false
    /// Whether a canvas of the requested size surrounds a smaller result.
    package var extend = ExtendOption()
    /// Whether a canvas of the requested aspect ratio surrounds the result.
    package var extendAspectRatio = ExtendOption()

    // MARK: Place

    package var gravity = GravityOption()
    package var crop = CropOption()
    package var trim: TrimOption?
    /// The area around the result, before `dpr`.
    package var padding = PaddingOption()
    /// Whether the orientation that the file's metadata gives is applied.
    package var autoRotates = true
    /// The clockwise rotation in degrees: 0, 90, 180 or 270.
    package var rotation = 0
    package var flipsHorizontally = false
    package var flipsVertically = false

    // MARK: Look

    /// The colour below transparent pixels.
    ///
    /// `nil` keeps them transparent if the format supports that.
    package var background: ColorOption?
    /// The standard deviation of the Gaussian blur in pixels; 0 is off.
    package var blur = 0.0
    /// The standard deviation of the sharpening in pixels; 0 is off.
    package var sharpen = 0.0
    /// The side of the squares in pixels; 0 and 1 are off.
    package var pixelate = 0
    package var watermark: WatermarkOption?

    // MARK: File

    package var stripsMetadata = true
    package var keepsCopyright = true
    package var stripsColorProfile = true
    package var preservesHDR = false
    package var prefersEmbeddedThumbnail = false
    /// The quality from 1 to 100.
    ///
    /// 0 takes the value of `formatQuality` or of the server's configuration.
    package var quality = 0
    package var formatQuality: [FormatName: Int] = [:]
    /// The largest size of the result in bytes, if a lower quality can achieve it; 0 for no limit.
    package var maximumByteCount = 0
    /// The requested format, from the option or the extension of the source.
    package var format: FormatName?
    /// The source formats that are sent unchanged.
    package var skippedFormats: Set<FormatName> = []
    /// Whether the source is sent untouched, whatever the other options say.
    package var isRaw = false

    // MARK: Response

    /// A text that changes only the URL and the cache key.
    package var cacheBuster = ""
    /// The time in seconds since 1970 after which the URL is invalid; `nil` if it is always valid.
    package var expires: Int?
    /// The file name of the response, without a suffix.
    ///
    /// It has no control characters.
    package var fileName: String?
    package var isAttachment = false

    // MARK: Limits

    package var limits = SecurityLimits()

    package init() {}
}

/// The ways to fit an image into a size, with their names in URLs.
package enum ResizingType: String, Sendable, Hashable, CaseIterable {
    /// The largest size within the requested one.
    case fit
    /// Covers the requested size and cuts off the rest.
    case fill
    /// Like `fill`, and cuts an image that is too small to the requested aspect ratio.
    case fillDown = "fill-down"
    /// Exactly the requested size; each side is scaled separately.
    case force
    /// `fill` if the image and the size are both upright or both wide, `fit` otherwise.
    case auto
}

/// A canvas around a result.
package struct ExtendOption: Sendable, Hashable {
    package var isOn = false
    /// The place of the result on the canvas.
    ///
    /// Its kind is never `smart` or `tile`.
    package var gravity = GravityOption()
}

/// The part of the source that is cut out before it is resized.
package struct CropOption: Sendable, Hashable {
    /// The width: 0 for all, a share of the width below 1, and whole pixels from 1 on.
    package var width = 0.0
    /// The height, likewise.
    package var height = 0.0
    /// The place of the part.
    ///
    /// `nil` stands for the gravity of the result.
    package var gravity: GravityOption?

    /// Whether the whole source is kept.
    package var isOff: Bool { self.width == 0 && self.height == 0 }
}

/// The removal of a border of one colour.
package struct TrimOption: Sendable, Hashable {
    /// The largest difference from the colour that still counts as border.
    package var threshold: Double
    /// The border's colour.
    ///
    /// `nil` stands for the colour of the pixel in the top left corner.
    package var color: ColorOption?
    /// Whether the left and the right side lose the same, the smaller of the two widths.
    package var isEqualHorizontally = false
    /// Whether the top and the bottom lose the same, the smaller of the two heights.
    package var isEqualVertically = false
}

/// The widths of an area around an image, in pixels.
package struct PaddingOption: Sendable, Hashable {
    package var top = 0
    package var right = 0
    package var bottom = 0
    package var left = 0
}

/// An opaque colour.
package struct ColorOption: Sendable, Hashable {
    package var red: UInt8
    package var green: UInt8
    package var blue: UInt8

    package init(red: UInt8, green: UInt8, blue: UInt8) {
        self.red = red
        self.green = green
        self.blue = blue
    }
}

/// The use of the server's watermark.
package struct WatermarkOption: Sendable, Hashable {
    /// The opacity, over 0 and at most 1; an option with 0 means no watermark.
    ///
    /// It multiplies the opacity in the server's configuration.
    package var opacity: Double
    /// The watermark's place.
    ///
    /// Its kind is never `focusPoint` or `smart`.
    package var position = GravityOption()
    /// The size of the watermark as a share of the result.
    ///
    /// 0 keeps the watermark's own size.
    package var scale = 0.0
}

/// The limits that URLs may change if the server allows it.
package struct SecurityLimits: Sendable, Hashable {
    /// The most pixels of a source, over all its frames; `nil` if the server decides.
    package var sourcePixelCount: Int?
    /// The most pixels of one frame.
    ///
    /// 0 leaves the decision to `sourcePixelCount`.
    package var framePixelCount = 0
    /// The most bytes of a source; 0 if there is no limit, `nil` if the server decides.
    package var sourceByteCount: Int?
    /// The most frames of an animation.
    package var frameCount = 1
    /// The longest side of a result in pixels; 0 stands for `largestSide`.
    package var resultSide = 8_192

    /// The longest side that any limit permits: the limit of GIF, and 35 pixels more than the JPEG encoder writes.
    package static let largestSide = 65_535

    package init() {}

    /// The longest side of a result in pixels, from 1 to `largestSide`.
    package var effectiveResultSide: Int {
        1...Self.largestSide ~= self.resultSide ? self.resultSide : Self.largestSide
    }
}

/// An image format that imgproxy's URLs can name.
///
/// The server decides which of them it writes.
package enum FormatName: String, Sendable, Hashable, CaseIterable, Comparable {
    case avif, bmp, gif, heic, ico, jpeg, jxl, png, svg, tiff, webp

    /// Creates a format from its name in a URL: in lower case, and `jpg` or `jpeg` for JPEG.
    package init?(urlName: String) {
        guard let format = urlName == "jpg" ? .jpeg : FormatName(rawValue: urlName) else { return nil }
        self = format
    }

    /// Output formats of imgproxy Pro.
    static let proNames: Set<String> = ["best", "mp4", "pdf"]

    package static func < (first: FormatName, second: FormatName) -> Bool { first.rawValue < second.rawValue }
}
