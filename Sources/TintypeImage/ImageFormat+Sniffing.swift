// SPDX-License-Identifier: Apache-2.0

extension ImageFormat {
    /// The bytes from the start of a file that signatures are looked for in.
    public static let signatureLength = 512

    /// Recognises a format by its signature at the start of the bytes.
    ///
    /// Returns `nil` for bytes of no known format. Names and media types play no role, because they are often wrong.
    ///
    /// Sources: the formats' specifications; for the ISO media brands RFC 4337 and the MP4 registration authority.
    ///
    /// ```swift
    /// let format = ImageFormat(sniffing: data)
    /// let gif = ImageFormat(sniffing: Array("GIF89a".utf8))  // .gif
    /// ```
    ///
    /// - Parameters:
    ///   - bytes: The file, or its start.
    ///   - formats: The formats of coders, which are matched before the known ones.
    public init?(sniffing bytes: some Collection<UInt8>, among formats: [ImageFormat] = []) {
        let bytes = Signature(bytes: Array(bytes.prefix(Self.signatureLength)), trailing: Array(bytes.suffix(18)))
        let own = formats.first { $0.matches(bytes.bytes) }
        guard
            let format = own ?? Self.bySignature(bytes) ?? Self.byBrand(bytes) ?? Self.byText(bytes)
                ?? Self.byLooseSignature(bytes)
        else { return nil }
        self = format
    }

    private static func bySignature(_ bytes: Signature) -> ImageFormat? {
        signatures.first {
            bytes.has($0.bytes) && ($0.also.map { bytes.has($0.bytes, at: $0.offset) } ?? true)
        }?
        .format
    }

    /// ISO base media files name their format by brand.
    private static func byBrand(_ bytes: Signature) -> ImageFormat? {
        guard bytes.has(Array("ftyp".utf8), at: 4) else { return nil }
        let end = min(bytes.bytes.count, Int(bytes.bytes[3]) | Int(bytes.bytes[2]) << 8)
        // The major brand, then the compatible ones; the minor version between them is skipped.
        let brands = [8] + Array(stride(from: 16, to: max(16, end - 3), by: 4))
        for offset in brands {
            guard let brand = bytes.string(at: offset, count: 4) else { break }
            if brand == "avif" || brand == "avis" { return .avif }
            if ["heic", "heix", "hevc", "hevx", "heim", "heis", "hevm", "hevs"].contains(brand) { return .heif }
            if brand == "jp2 " || brand == "jpx " || brand == "jpm " { return .jpeg2000 }
            if brand == "jxl " { return .jpegXL }
        }
        // Generic brands say only that images are inside.
        return ["mif1", "mif2", "msf1", "miaf"].contains(bytes.string(at: 8, count: 4)) ? .heif : nil
    }

    private static func byText(_ bytes: Signature) -> ImageFormat? {
        var text = bytes.bytes[...]
        if text.starts(with: [0xEF, 0xBB, 0xBF]) { text = text.dropFirst(3) }
        guard text.first(where: { !Signature.isSpace($0) }) == UInt8(ascii: "<") else { return nil }
        let start = String(decoding: text, as: UTF8.self).lowercased()
        // An HTML page may hold a drawing; it is still a page.
        return start.contains("<svg") && !start.contains("<html") ? .svg : nil
    }

    /// Signatures of two or three bytes, which other data may have by chance.
    private static func byLooseSignature(_ bytes: Signature) -> ImageFormat? {
        if bytes.has(Array("BM".utf8)), bytes.bytes.count >= 18, bytes.bytes[6..<10].allSatisfy({ $0 == 0 }) {
            return .bmp
        }
        if let first = bytes.bytes.first, first == UInt8(ascii: "P"), bytes.bytes.count >= 3,
            "123456f7F".utf8.contains(bytes.bytes[1]), Signature.isSpace(bytes.bytes[2])
        {
            return .netpbm
        }
        return bytes.trailing.starts(with: Array("TRUEVISION-XFILE.\0".utf8)) ? .tga : nil
    }

    private struct KnownSignature {
        let format: ImageFormat
        let bytes: [UInt8]
        let also: (bytes: [UInt8], offset: Int)?

        init(_ format: ImageFormat, _ bytes: [UInt8], and also: (bytes: [UInt8], offset: Int)? = nil) {
            self.format = format
            self.bytes = bytes
            self.also = also
        }

        init(_ format: ImageFormat, _ text: String, and also: (String, Int)? = nil) {
            self.init(format, Array(text.utf8), and: also.map { (Array($0.0.utf8), $0.1) })
        }
    }

    private static let signatures: [KnownSignature] = [
        KnownSignature(.jpeg, [0xFF, 0xD8, 0xFF]),
        KnownSignature(.png, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
        KnownSignature(.gif, "GIF87a"),
        KnownSignature(.gif, "GIF89a"),
        KnownSignature(.webp, "RIFF", and: ("WEBP", 8)),
        KnownSignature(.tiff, [0x49, 0x49, 0x2A, 0x00]),
        KnownSignature(.tiff, [0x4D, 0x4D, 0x00, 0x2A]),
        KnownSignature(.tiff, [0x49, 0x49, 0x2B, 0x00]),
        KnownSignature(.tiff, [0x4D, 0x4D, 0x00, 0x2B]),
        KnownSignature(.jpegXL, [0xFF, 0x0A]),
        KnownSignature(.jpegXL, [0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A]),
        KnownSignature(.jpeg2000, [0, 0, 0, 0x0C, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A]),
        KnownSignature(.jpeg2000, [0xFF, 0x4F, 0xFF, 0x51]),
        KnownSignature(.ico, [0, 0, 1, 0], and: ([0], 9)),
        KnownSignature(.ico, [0, 0, 2, 0], and: ([0], 9)),
        KnownSignature(.pdf, "%PDF-"),
        KnownSignature(.psd, "8BPS"),
        KnownSignature(.qoi, "qoif"),
        KnownSignature(.dds, "DDS "),
        KnownSignature(.openEXR, [0x76, 0x2F, 0x31, 0x01]),
        KnownSignature(.radianceHDR, "#?RADIANCE"),
        KnownSignature(.radianceHDR, "#?RGBE"),
        KnownSignature(.flif, "FLIF"),
        KnownSignature(.bpg, [0x42, 0x50, 0x47, 0xFB]),
        KnownSignature(.jpegXR, [0x49, 0x49, 0xBC]),
        KnownSignature(.farbfeld, "farbfeld"),
        KnownSignature(.icns, "icns"),
        KnownSignature(.wmf, [0xD7, 0xCD, 0xC6, 0x9A]),
        KnownSignature(.emf, [1, 0, 0, 0], and: (Array(" EMF".utf8), 40)),
        KnownSignature(.xcf, "gimp xcf"),
    ]
}

/// The start and the end of a body, as far as signatures look at them.
private struct Signature {
    let bytes: [UInt8]
    let trailing: [UInt8]

    func has(_ signature: [UInt8], at offset: Int = 0) -> Bool {
        self.bytes.dropFirst(offset).starts(with: signature)
    }

    func string(at offset: Int, count: Int) -> String? {
        guard offset + count <= self.bytes.count else { return nil }
        return String(decoding: self.bytes[offset..<offset + count], as: UTF8.self)
    }

    static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || (0x09...0x0D).contains(byte)
    }
}
