// SPDX-License-Identifier: Apache-2.0

/// An encoded image format: a widespread one, or one that a coder adds.
///
/// Known formats have a member each, so that an error can name the format of a body even without a coder for it.
/// Formats are equal if their names are equal. Copies and comparisons of known formats cost nothing.
public struct ImageFormat: Sendable, Hashable, CustomStringConvertible {
    /// The known formats by their names.
    private enum Known: String, Sendable, CaseIterable {
        case jpeg, png, webp, gif, avif, heif, jpegXL = "jpegxl", jpeg2000, tiff, bmp, ico, svg, pdf, psd, qoi, netpbm
        case dds, openEXR = "openexr", radianceHDR = "radiancehdr", tga, flif, bpg, jpegXR = "jpegxr", farbfeld, icns
        case wmf, emf, xcf
    }

    private enum Value: Sendable {
        case known(Known)
        /// In a box: a known one is as small as its case.
        indirect case own(Own)
    }

    /// The description of a format that a coder adds.
    private struct Own: Sendable {
        let name: String
        let mediaType: String
        let fileExtensions: [String]
        let matches: @Sendable (_ start: [UInt8]) -> Bool
    }

    private let value: Value

    private init(value: Known) {
        self.value = .known(value)
    }

    /// Describes a format of a coder, which names it among the formats that it reads or writes.
    ///
    /// ```swift
    /// let format = ImageFormat(name: "ktx", mediaType: "image/ktx", fileExtensions: ["ktx"]) { start in
    ///     start.starts(with: [0xAB, 0x4B, 0x54, 0x58])
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name, also in files of caches: no other format may have it.
    ///   - mediaType: The media type, for the `Accept` field of requests.
    ///   - fileExtensions: The extensions of file names without their dots, the usual one first.
    ///   - matches: Returns whether a file has the format. It receives the first ``signatureLength`` bytes, or all of a
    ///     shorter file, before the signatures of known formats are compared.
    public init(
        name: String,
        mediaType: String,
        fileExtensions: [String] = [],
        matches: @escaping @Sendable (_ start: [UInt8]) -> Bool
    ) {
        let own = Own(
            name: name.lowercased(),
            mediaType: mediaType,
            fileExtensions: fileExtensions.map { $0.lowercased() },
            matches: matches
        )
        self.value = .own(own)
    }

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

    /// Every known format.
    public static let all = Known.allCases.map { ImageFormat(value: $0) }

    /// Whether the format is one of ``all``, and not a coder's own.
    public var isKnown: Bool {
        if case .known = self.value { true } else { false }
    }

    /// The stable lower-case name, such as `jpeg`; the command prints it.
    public var name: String {
        switch self.value {
        case .known(let format): format.rawValue
        case .own(let format): format.name
        }
    }

    public var description: String { self.name }

    public static func == (left: ImageFormat, right: ImageFormat) -> Bool {
        switch (left.value, right.value) {
        case (.known(let left), .known(let right)): left == right
        default: left.name == right.name
        }
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.name)
    }

    /// Creates the format of a name as ``name`` returns it, or `nil`; `jpg` is valid as well.
    ///
    /// ```swift
    /// let format = ImageFormat(name: "webp")  // .webp
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name, in any case.
    ///   - formats: The formats of coders, in addition to the known ones.
    public init?(name: String, among formats: [ImageFormat] = []) {
        let name = name.lowercased() == "jpg" ? "jpeg" : name.lowercased()
        if let format = formats.first(where: { $0.name == name }) {
            self = format
        } else if let known = Known(rawValue: name) {
            self.init(value: known)
        } else {
            return nil
        }
    }

    /// Creates the format of a file name extension without its dot, or `nil`.
    ///
    /// ```swift
    /// let format = ImageFormat(fileExtension: url.pathExtension)
    /// ```
    ///
    /// - Parameters:
    ///   - fileExtension: The extension, in any case.
    ///   - formats: The formats of coders, in addition to the known ones.
    public init?(fileExtension: String, among formats: [ImageFormat] = []) {
        let text = fileExtension.lowercased()
        let format = ImageFormat(name: text, among: formats)
        guard let format = format ?? (formats + Self.all).first(where: { $0.fileExtensions.contains(text) }) else {
            return nil
        }
        self = format
    }

    /// The usual file name extension, without a dot.
    public var fileExtension: String { self.fileExtensions.first ?? self.name }

    /// The file name extensions, without their dots, the usual one first.
    public var fileExtensions: [String] {
        switch self.value {
        case .own(let format): format.fileExtensions
        case .known(.jpeg): ["jpg", "jpeg", "jpe", "jfif"]
        case .known(.png): ["png", "apng"]
        case .known(.heif): ["heic", "heif"]
        case .known(.jpegXL): ["jxl"]
        case .known(.jpeg2000): ["jp2", "jpf", "j2k"]
        case .known(.tiff): ["tiff", "tif"]
        case .known(.netpbm): ["pnm", "ppm", "pgm", "pbm", "pam"]
        case .known(.openEXR): ["exr"]
        case .known(.radianceHDR): ["hdr"]
        case .known(.jpegXR): ["jxr"]
        case .known(.farbfeld): ["ff"]
        case .known(let format): [format.rawValue]
        }
    }

    /// The media type, as registered or as commonly used.
    public var mediaType: String {
        switch self.value {
        case .own(let format): format.mediaType
        case .known(.svg): "image/svg+xml"
        case .known(.pdf): "application/pdf"
        case .known(.jpegXL): "image/jxl"
        case .known(.jpeg2000): "image/jp2"
        case .known(.jpegXR): "image/jxr"
        case .known(.ico): "image/vnd.microsoft.icon"
        case .known(.psd): "image/vnd.adobe.photoshop"
        case .known(.dds): "image/vnd-ms.dds"
        case .known(.netpbm): "image/x-portable-anymap"
        case .known(.openEXR): "image/x-exr"
        case .known(.radianceHDR): "image/vnd.radiance"
        case .known(.tga): "image/x-tga"
        case .known(let format):
            switch format {
            case .qoi, .flif, .bpg, .farbfeld, .icns, .xcf: "image/x-\(format.rawValue)"
            default: "image/\(format.rawValue)"
            }
        }
    }

    /// Whether a file begins as a coder's own format says; false for known formats, which are told apart together.
    func matches(_ start: [UInt8]) -> Bool {
        if case .own(let format) = self.value { format.matches(start) } else { false }
    }
}
