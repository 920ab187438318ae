/// An encoded picture format.
///
/// All formats that are met in the field have a member, so that an error can name what a
/// body is even where no coder exists for it.
public struct ImageFormat: Sendable, Hashable, CustomStringConvertible {
    private enum Value: String, Sendable {
        case jpeg, png, webp, gif, avif, heif, jpegXL, jpeg2000, tiff, bmp, ico, svg, pdf, psd, qoi, netpbm, dds
        case openEXR, radianceHDR, tga, flif, bpg, jpegXR, farbfeld, icns, wmf, emf, xcf
    }

    private let value: Value

    /// JPEG (ITU-T T.81), in a JFIF, EXIF or bare stream.
    public static let jpeg = ImageFormat(value: .jpeg)
    /// PNG and APNG (W3C PNG, third edition).
    public static let png = ImageFormat(value: .png)
    /// WebP, still or animated (RFC 9649).
    public static let webp = ImageFormat(value: .webp)
    /// GIF 87a and 89a.
    public static let gif = ImageFormat(value: .gif)
    /// AVIF, still or a sequence.
    public static let avif = ImageFormat(value: .avif)
    /// HEIF and HEIC, still or a sequence.
    public static let heif = ImageFormat(value: .heif)
    /// JPEG XL, as a bare codestream or in its container.
    public static let jpegXL = ImageFormat(value: .jpegXL)
    /// JPEG 2000, as a bare codestream or in its container.
    public static let jpeg2000 = ImageFormat(value: .jpeg2000)
    /// TIFF and BigTIFF; raw files of many cameras look the same.
    public static let tiff = ImageFormat(value: .tiff)
    /// Windows bitmap.
    public static let bmp = ImageFormat(value: .bmp)
    /// Windows icon or cursor.
    public static let ico = ImageFormat(value: .ico)
    /// Scalable Vector Graphics.
    public static let svg = ImageFormat(value: .svg)
    /// Portable Document Format.
    public static let pdf = ImageFormat(value: .pdf)
    /// Photoshop document.
    public static let psd = ImageFormat(value: .psd)
    /// Quite OK Image.
    public static let qoi = ImageFormat(value: .qoi)
    /// PBM, PGM, PPM, PAM and PFM.
    public static let netpbm = ImageFormat(value: .netpbm)
    /// DirectDraw surface.
    public static let dds = ImageFormat(value: .dds)
    /// OpenEXR.
    public static let openEXR = ImageFormat(value: .openEXR)
    /// Radiance RGBE.
    public static let radianceHDR = ImageFormat(value: .radianceHDR)
    /// Truevision TGA with the footer of version 2; version 1 has no signature.
    public static let tga = ImageFormat(value: .tga)
    /// Free Lossless Image Format.
    public static let flif = ImageFormat(value: .flif)
    /// Better Portable Graphics.
    public static let bpg = ImageFormat(value: .bpg)
    /// JPEG XR.
    public static let jpegXR = ImageFormat(value: .jpegXR)
    /// farbfeld.
    public static let farbfeld = ImageFormat(value: .farbfeld)
    /// Apple icon.
    public static let icns = ImageFormat(value: .icns)
    /// Windows metafile.
    public static let wmf = ImageFormat(value: .wmf)
    /// Enhanced metafile.
    public static let emf = ImageFormat(value: .emf)
    /// GIMP document.
    public static let xcf = ImageFormat(value: .xcf)

    /// Every format that can be recognised.
    public static let all: [ImageFormat] = [
        .jpeg, .png, .webp, .gif, .avif, .heif, .jpegXL, .jpeg2000, .tiff, .bmp, .ico, .svg, .pdf, .psd, .qoi, .netpbm,
        .dds, .openEXR, .radianceHDR, .tga, .flif, .bpg, .jpegXR, .farbfeld, .icns, .wmf, .emf, .xcf,
    ]

    /// The stable lower-case name, such as `jpeg`; the command prints it.
    public var name: String { self.value.rawValue.lowercased() }

    public var description: String { self.name }

    /// The format of a name as ``name`` gives it, or `nil`; `jpg` is understood as well.
    public init?(name: String) {
        let name = name.lowercased() == "jpg" ? "jpeg" : name.lowercased()
        guard let format = Self.all.first(where: { $0.name == name }) else { return nil }
        self = format
    }

    /// The format that a file name extension stands for, without its dot, or `nil`.
    public init?(fileExtension: String) {
        let text = fileExtension.lowercased()
        let aliases: [String: ImageFormat] = [
            "jpe": .jpeg, "jfif": .jpeg, "apng": .png, "heif": .heif, "tif": .tiff, "jpf": .jpeg2000, "j2k": .jpeg2000,
            "ppm": .netpbm, "pgm": .netpbm, "pbm": .netpbm, "pam": .netpbm,
        ]
        guard
            let format = ImageFormat(name: text) ?? Self.all.first(where: { $0.fileExtension == text }) ?? aliases[text]
        else { return nil }
        self = format
    }

    private init(value: Value) {
        self.value = value
    }

    /// The usual file name extension, without a dot.
    public var fileExtension: String {
        switch self.value {
        case .jpeg: "jpg"
        case .heif: "heic"
        case .jpegXL: "jxl"
        case .jpeg2000: "jp2"
        case .netpbm: "pnm"
        case .openEXR: "exr"
        case .radianceHDR: "hdr"
        case .jpegXR: "jxr"
        case .farbfeld: "ff"
        default: self.value.rawValue
        }
    }

    /// The media type, as registered or as commonly used.
    public var mediaType: String {
        switch self.value {
        case .svg: "image/svg+xml"
        case .pdf: "application/pdf"
        case .jpegXL: "image/jxl"
        case .jpeg2000: "image/jp2"
        case .jpegXR: "image/jxr"
        case .ico: "image/vnd.microsoft.icon"
        case .psd: "image/vnd.adobe.photoshop"
        case .dds: "image/vnd-ms.dds"
        case .netpbm: "image/x-portable-anymap"
        case .openEXR: "image/x-exr"
        case .radianceHDR: "image/vnd.radiance"
        case .tga: "image/x-tga"
        case .qoi, .flif, .bpg, .farbfeld, .icns, .xcf: "image/x-\(self.value.rawValue)"
        default: "image/\(self.value.rawValue)"
        }
    }
}
