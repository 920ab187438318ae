import FoundationEssentials
import TintypeCaching
public import TintypeCoding
public import TintypeImage

/// How a server wants a picture encoded: the format and everything that its coder can be told.
public struct PictureEncoding: Sendable, Hashable {
    /// The format.
    public let format: ImageFormat
    /// What its coder is told.
    public let options: EncodeOptions
    /// Stands for both in look-ups in memory, within this process.
    let number: UInt64

    /// Describes an encoding.
    public init(_ format: ImageFormat, options: EncodeOptions = EncodeOptions()) {
        self.format = format
        self.options = options
        var hasher = Hasher()
        hasher.combine(format)
        hasher.combine(options)
        self.number = UInt64(bitPattern: Int64(hasher.finalize()))
    }

    /// JPEG, transparency laid over white.
    public static func jpeg(quality: Int = 80, isProgressive: Bool = false) -> PictureEncoding {
        PictureEncoding(.jpeg, options: EncodeOptions(quality: quality, isProgressive: isProgressive))
    }

    /// Lossy WebP.
    public static func webp(quality: Int = 80) -> PictureEncoding {
        PictureEncoding(.webp, options: EncodeOptions(quality: quality))
    }

    /// PNG.
    public static let png = PictureEncoding(.png)

    /// GIF.
    public static let gif = PictureEncoding(.gif)

    public static func == (left: PictureEncoding, right: PictureEncoding) -> Bool {
        left.number == right.number && left.format == right.format && left.options == right.options
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.number)
    }

    /// The key of a picture in this encoding.
    func key(of picture: CacheKey) -> CacheKey {
        // Every field of the options counts, also one that is added to them later.
        let digest = CacheKey(Self.text(of: self.options)).digest.prefix(32)
        let name = "|as(\(self.format.name), \(digest))"
        return picture.isDerived ? CacheKey(picture.text + name) : picture.derived(name)
    }

    private static func text(of value: Any) -> String {
        if let data = value as? Data { return "\(data.count):\(BodyDigest.value(of: data))" }
        let children = Mirror(reflecting: value).children
        guard !children.isEmpty else { return "\(value)" }
        return "(" + children.map { "\($0.label ?? ""):\(self.text(of: $0.value))" }.joined(separator: ",") + ")"
    }
}
