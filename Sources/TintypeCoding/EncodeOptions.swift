// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeImage

/// Options for encoding an image.
public struct EncodeOptions: Sendable, Hashable {
    /// The quality of lossy formats, 1 to 100; 80 by default.
    ///
    /// Values outside this range count as 1 or 100. Lossless formats ignore it.
    public var quality: Int
    /// The colour behind transparent pixels in formats without alpha; white by default.
    ///
    /// The alpha of this colour is ignored.
    public var background: Color

    /// Whether a JPEG is written in scans from coarse to fine; `false` by default.
    public var isProgressive: Bool
    /// How a JPEG stores colour; by default depends on the quality: 4:4:4 from 90 on, 4:2:0 below.
    public var chromaSubsampling: ChromaSubsampling
    /// How a WebP is compressed; lossy by default.
    public var compression: Compression
    /// The effort of PNG's compression, 0 to 9; 6 by default.
    ///
    /// Higher levels make smaller files and take longer. 0 stores the samples. 1 compresses with ISA-L. 2 and 3 use
    /// runs and long repeats, 4 to 8 also shorter and more distant ones. 9 compares all of them and takes four to
    /// twenty times as long as 6. The coder chooses the filter from a sample of the rows.
    public var pngLevel: Int
    /// The filters that PNG may choose from; by default depends on the content.
    public var pngFilter: PNGFilter
    /// The effort of lossy WebP, 0 to 6; 4 by default.
    ///
    /// Values outside this range count as 0 or 6. Higher values make smaller files and take longer. 2 takes half the
    /// time of 4, and makes files about 3 percent larger. libwebp calls this option `method`. 6 counts as 5 for
    /// animations and images with alpha, because libwebp would compress alpha for seconds without a check for
    /// cancellation.
    public var webpEffort: Int
    /// The most bytes that the result may have; `nil`, the default, is no limit.
    ///
    /// To fit, the coder lowers the quality of lossy formats, gives GIF fewer colours, and compresses PNG with more
    /// effort. If that does not suffice, encoding fails, unless ``requiresMaximumByteCount`` is `false`.
    public var maximumByteCount: Int?
    /// Whether encoding fails if no result fits ``maximumByteCount``; `true` by default.
    ///
    /// If not, the result is then the one of the lowest quality, and of PNG and lossless WebP the smallest one.
    public var requiresMaximumByteCount: Bool
    /// The metadata blocks to write; none by default.
    public var metadata: Metadata
    /// Whether colours of a palette format are mixed by dithering; `true` by default.
    public var isDithered: Bool

    /// Whether the coder takes as little memory as it can, even if that takes longer; `false` by default.
    ///
    /// The loader sets it if the encode does not fit in memory otherwise.
    package var savesMemory = false

    /// A copy of these options for a coder that takes as little memory as it can.
    package var savingMemory: EncodeOptions {
        var options = self
        options.savesMemory = true
        return options
    }

    /// How a JPEG stores colour.
    public enum ChromaSubsampling: Sendable, Hashable {
        /// Depends on the quality: 4:4:4 from 90 on, 4:2:0 below.
        case automatic
        /// Full colour resolution.
        case none
        /// Half the colour columns.
        case half
        /// Half the colour columns and rows.
        case quarter
    }

    /// How a WebP is compressed.
    public enum Compression: Sendable, Hashable {
        /// Lossy, by quality.
        case lossy
        /// Lossless, including the colours of transparent pixels.
        case lossless
        /// Lossless after small changes: 0 changes most, 100 nothing.
        case nearLossless(Int)
    }

    /// The filters that PNG may choose from for each row.
    public enum PNGFilter: Sendable, Hashable {
        /// The filter that makes a sample of the rows smallest, or a separate choice for each row if that is smaller.
        ///
        /// An image with few colours gets no filter.
        case automatic
        /// No filter.
        case none
        /// All filters, with a choice for each row.
        case all
    }

    /// Metadata blocks.
    public struct Metadata: Sendable, Hashable {
        /// An EXIF block: a TIFF structure without a prefix.
        public var exif: Data?
        /// An XMP packet.
        public var xmp: Data?
        /// An ICC profile that describes the samples; `nil` writes the image's own profile.
        public var colorProfile: Data?

        /// Creates a set of blocks, all absent by default.
        ///
        /// ```swift
        /// let metadata = try ImageDecoder(data, registry: CoderRegistry()).metadata()
        /// let options = EncodeOptions(metadata: .init(exif: metadata.exif, xmp: metadata.xmp))
        /// ```
        public init(exif: Data? = nil, xmp: Data? = nil, colorProfile: Data? = nil) {
            self.exif = exif
            self.xmp = xmp
            self.colorProfile = colorProfile
        }
    }

    /// Creates options; by default for quality 80 over white, without metadata.
    ///
    /// ```swift
    /// let options = EncodeOptions(quality: 75, isProgressive: true)
    /// let jpeg = try await loader.encode(image, as: .jpeg, options: options)
    /// ```
    public init(
        quality: Int = 80,
        background: Color = .white,
        isProgressive: Bool = false,
        chromaSubsampling: ChromaSubsampling = .automatic,
        compression: Compression = .lossy,
        pngLevel: Int = 6,
        pngFilter: PNGFilter = .automatic,
        webpEffort: Int = 4,
        maximumByteCount: Int? = nil,
        requiresMaximumByteCount: Bool = true,
        metadata: Metadata = Metadata(),
        isDithered: Bool = true
    ) {
        self.quality = quality
        self.background = background
        self.isProgressive = isProgressive
        self.chromaSubsampling = chromaSubsampling
        self.compression = compression
        self.pngLevel = pngLevel
        self.pngFilter = pngFilter
        self.webpEffort = webpEffort
        self.maximumByteCount = maximumByteCount
        self.requiresMaximumByteCount = requiresMaximumByteCount
        self.metadata = metadata
        self.isDithered = isDithered
    }

    /// Returns the result of `encode` at the highest quality below `quality` that succeeds, in at most seven attempts.
    static func largest(below quality: Int, _ encode: (_ quality: Int) throws -> Data?) rethrows -> Data? {
        var best: Data?
        var (low, high) = (1, quality - 1)
        while low <= high {
            let middle = (low + high) / 2
            if let data = try encode(middle) {
                best = data
                low = middle + 1
            } else {
                high = middle - 1
            }
        }
        return best
    }
}

/// An animation to encode: whole canvases and how long each is shown.
public struct AnimationContent: Sendable {
    /// One image of the animation.
    public struct Frame: Sendable {
        /// The image, which must have the size of the first.
        public var image: Image
        /// How long the image is shown, in milliseconds.
        public var milliseconds: Int

        /// Creates a frame.
        ///
        /// ```swift
        /// let frame = AnimationContent.Frame(image: image, milliseconds: 500)
        /// ```
        public init(image: Image, milliseconds: Int) {
            self.image = image
            self.milliseconds = milliseconds
        }
    }

    /// The images in their order, at least one.
    public var frames: [Frame]
    /// How often the animation is shown; 0 is forever.
    public var loopCount: Int

    /// Creates an animation, by default one that repeats forever.
    ///
    /// ```swift
    /// let frames = [image, logo].map { AnimationContent.Frame(image: $0, milliseconds: 500) }
    /// let gif = try await loader.encode(AnimationContent(frames: frames), as: .gif)
    /// ```
    public init(frames: [Frame], loopCount: Int = 0) {
        self.frames = frames
        self.loopCount = loopCount
    }
}

// MARK: - Memory

extension ImageCoder {
    /// Returns the most memory in bytes that encoding `animation` takes at once in addition to its frames.
    ///
    /// - Throws: `ImageError` for frames that do not fit in memory.
    package func encodingByteCount(
        of animation: AnimationContent,
        as format: ImageFormat,
        options: EncodeOptions
    ) throws -> Int {
        // The coder refuses an animation without frames.
        guard let layout = try animation.richestLayout else { return 0 }
        let count = self.encodingByteCount(
            of: layout,
            frameCount: animation.frames.count,
            as: format,
            options: options
        )
        return animation.frames.reduce(count.saturatingAdded(to: options.metadata.writingByteCount)) { sum, frame in
            sum.saturatingAdded(to: frame.image.turnByteCount).saturatingAdded(to: frame.image.conversionByteCount)
        }
    }
}

extension AnimationContent {
    /// The size of the first frame when upright, in a format that holds the pixels of all frames.
    fileprivate var richestLayout: PixelLayout? {
        get throws {
            guard let first = self.frames.first?.image else { return nil }
            let formats = Set(self.frames.map { $0.image.pixels.format })
            let format = [PixelFormat.rgba8, .rgb8].first { formats.contains($0) } ?? .gray8
            let size = first.orientation.uprightSize(width: first.width, height: first.height)
            return try PixelLayout(format: format, width: size.width, height: size.height)
        }
    }
}

extension Image {
    /// The bytes of the copy that is turned upright.
    package var turnByteCount: Int {
        guard self.orientation != .up else { return 0 }
        let size = self.orientation.uprightSize(width: self.width, height: self.height)
        return (try? PixelLayout(format: self.pixels.format, width: size.width, height: size.height).byteCount) ?? .max
    }

    /// The bytes of the copies that a conversion of the samples to sRGB makes.
    package var conversionByteCount: Int {
        guard self.colorProfile != nil else { return 0 }
        // A gray image whose profile is for RGB is converted to `rgb8` first.
        return self.pixels.byteCount.saturatingMultiplied(by: self.pixels.format == .gray8 ? 6 : 1)
    }
}

extension EncodeOptions.Metadata {
    /// The bytes of the blocks and of the copies that writing makes of them.
    package var writingByteCount: Int {
        [self.exif, self.xmp, self.colorProfile].reduce(0) { $0 + ($1?.count ?? 0) * 4 }
    }
}

extension ImageFormat {
    /// Returns a format for an image if the caller chose none: PNG for images with transparency, otherwise JPEG.
    ///
    /// Reads the pixels of an image with alpha.
    package static func suitable(for image: Image) -> ImageFormat { image.hasTransparency ? .png : .jpeg }
}
