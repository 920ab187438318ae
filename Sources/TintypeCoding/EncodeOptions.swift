public import FoundationEssentials
public import TintypeImage

/// How an image becomes bytes.
public struct EncodeOptions: Sendable, Hashable {
    /// The quality of lossy formats, 1 to 100; default 80.
    ///
    /// What is below or above is taken for 1 or 100. Lossless formats ignore it.
    public var quality: Int
    /// What transparent pixels are laid over in formats without alpha; default white.
    ///
    /// Its own alpha is ignored.
    public var background: Color

    /// Whether a JPEG is written in scans from coarse to fine; default false.
    public var isProgressive: Bool
    /// How a JPEG stores colour; default by quality: 4:4:4 from 90 on, else 4:2:0.
    public var chromaSubsampling: ChromaSubsampling
    /// How a WebP is compressed; default lossy.
    public var compression: Compression
    /// The effort of PNG's compression, 0 to 9; default 6.
    ///
    /// Higher levels make smaller files and take longer. 0 stores the samples. 1 compresses with ISA-L. 2 and 3 take runs
    /// and long repeats, 4 to 8 also shorter and more distant ones. 9 weighs all of them against each other and takes four to
    /// twenty times as long as 6. A sample of the rows decides about the filter.
    public var pngLevel: Int
    /// The filters that PNG may choose from; default by content.
    public var pngFilter: PNGFilter
    /// The most bytes that the result may have; `nil` is no limit.
    ///
    /// The quality of lossy formats is lowered until it fits, GIF gets fewer colours, and PNG takes more effort.
    /// Where that does not help, encoding fails.
    public var maximumByteCount: Int?
    /// The blocks to write along; default none.
    public var metadata: Metadata
    /// Whether colours of a palette format are mixed by dithering; default true.
    public var isDithered: Bool

    /// Whether the coder takes as little memory as it can, even if that takes longer: the loader asks for it when there is
    /// no room otherwise.
    package var savesMemory = false

    /// These options for a coder that takes as little memory as it can.
    package var savingMemory: EncodeOptions {
        var options = self
        options.savesMemory = true
        return options
    }

    /// How a JPEG stores colour.
    public enum ChromaSubsampling: Sendable, Hashable {
        /// By quality: 4:4:4 from 90 on, else 4:2:0.
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
        /// Every pixel is kept; hidden colours too.
        case lossless
        /// Lossless after small changes: 0 changes most, 100 nothing.
        case nearLossless(Int)
    }

    /// The filters that PNG may choose from for each row.
    public enum PNGFilter: Sendable, Hashable {
        /// The filter that makes a sample of the rows smallest, or the best one for each row if that does. No filter for few
        /// colours.
        case automatic
        /// No filter.
        case none
        /// All filters, chosen for each row.
        case all
    }

    /// Blocks of metadata.
    public struct Metadata: Sendable, Hashable {
        /// An EXIF block: a TIFF structure without a prefix.
        public var exif: Data?
        /// An XMP packet.
        public var xmp: Data?
        /// An ICC profile, which must be that of the samples; `nil` writes the one that the image has.
        public var colorProfile: Data?

        /// Collects blocks.
        public init(exif: Data? = nil, xmp: Data? = nil, colorProfile: Data? = nil) {
            self.exif = exif
            self.xmp = xmp
            self.colorProfile = colorProfile
        }
    }

    /// Options, by default for quality 80 over white, without metadata.
    public init(
        quality: Int = 80,
        background: Color = .white,
        isProgressive: Bool = false,
        chromaSubsampling: ChromaSubsampling = .automatic,
        compression: Compression = .lossy,
        pngLevel: Int = 6,
        pngFilter: PNGFilter = .automatic,
        maximumByteCount: Int? = nil,
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
        self.maximumByteCount = maximumByteCount
        self.metadata = metadata
        self.isDithered = isDithered
    }

    /// What `encode` makes at the best quality below `quality` at which it gives anything: at most seven tries.
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

/// An animation to be encoded: whole canvases and how long each is shown.
public struct AnimationContent: Sendable {
    /// One image of the animation.
    public struct Frame: Sendable {
        /// The image; all have the size of the first.
        public var image: Image
        /// How long it is shown.
        public var milliseconds: Int

        /// Creates a frame.
        public init(image: Image, milliseconds: Int) {
            self.image = image
            self.milliseconds = milliseconds
        }
    }

    /// The images in their order, at least one.
    public var frames: [Frame]
    /// How often they are shown; 0 is forever.
    public var loopCount: Int

    /// Creates an animation.
    public init(frames: [Frame], loopCount: Int = 0) {
        self.frames = frames
        self.loopCount = loopCount
    }
}

// MARK: - Memory

extension ImageCoder {
    /// Returns the bytes of memory that encoding `animation` takes at most at once besides its frames.
    ///
    /// - Throws: `ImageError` for frames that no memory holds.
    package func encodingByteCount(
        of animation: AnimationContent,
        as format: ImageFormat,
        options: EncodeOptions
    ) throws -> Int {
        // A coder refuses an animation without frames.
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
    /// The size of the first frame upright, in a format that holds the pixels of all frames.
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

    /// The bytes of the copies that are made when the samples are brought to sRGB.
    package var conversionByteCount: Int {
        guard self.colorProfile != nil else { return 0 }
        // Gray of a profile for colours becomes colour before.
        return self.pixels.byteCount.saturatingMultiplied(by: self.pixels.format == .gray8 ? 6 : 1)
    }
}

extension EncodeOptions.Metadata {
    /// The bytes of the blocks and of the copies that are made of them as they are written.
    package var writingByteCount: Int {
        [self.exif, self.xmp, self.colorProfile].reduce(0) { $0 + ($1?.count ?? 0) * 4 }
    }
}

extension ImageFormat {
    /// Returns the format for an image whose format nobody has chosen: PNG for one with any transparency, JPEG for others.
    ///
    /// Reads the pixels of an image with alpha.
    package static func suitable(for image: Image) -> ImageFormat { image.hasTransparency ? .png : .jpeg }
}
