// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage

/// The start of a body, and its format.
struct Sniffing: Sendable, CustomTestStringConvertible {
    let name: String
    let bytes: [UInt8]
    let format: ImageFormat?

    /// Creates a body from bytes, padded with zeros to at least `count` bytes.
    init(_ name: String, _ bytes: [UInt8], count: Int = 0, is format: ImageFormat?) {
        self.name = name
        self.bytes = bytes + [UInt8](repeating: 0, count: max(0, count - bytes.count))
        self.format = format
    }

    /// Creates a body from text.
    init(_ name: String, _ text: String, count: Int = 0, is format: ImageFormat?) {
        self.init(name, Array(text.utf8), count: count, is: format)
    }

    /// Creates the first box of an ISO base media file.
    init(brand: String, compatible: [String] = [], is format: ImageFormat?) {
        let size = UInt8(16 + compatible.count * 4)
        let box = [0, 0, 0, size] + Array("ftyp\(brand)".utf8) + [0, 0, 0, 0] + compatible.flatMap { Array($0.utf8) }
        // The sniffer ignores brands after the end of the box.
        self.init("\(brand) \(compatible)", box + Array("____avifheic".utf8), is: format)
    }

    var testDescription: String { self.name }

    static let images: [Sniffing] = [
        Sniffing("JPEG with JFIF", [0xFF, 0xD8, 0xFF, 0xE0, 0, 16], is: .jpeg),
        Sniffing("JPEG with EXIF", [0xFF, 0xD8, 0xFF, 0xE1, 0, 16], is: .jpeg),
        Sniffing("bare JPEG", [0xFF, 0xD8, 0xFF, 0xDB], is: .jpeg),
        Sniffing("PNG", [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0], is: .png),
        Sniffing("WebP", "RIFF\u{1}\u{2}\u{3}\u{4}WEBPVP8 ", is: .webp),
        Sniffing("WebP, extended", "RIFF....WEBPVP8X", is: .webp),
        Sniffing("GIF 87a", "GIF87a...", is: .gif),
        Sniffing("GIF 89a", "GIF89a...", is: .gif),
        Sniffing("TIFF, little endian", [0x49, 0x49, 0x2A, 0, 8, 0], is: .tiff),
        Sniffing("TIFF, big endian", [0x4D, 0x4D, 0, 0x2A, 0, 0], is: .tiff),
        Sniffing("BigTIFF, little endian", [0x49, 0x49, 0x2B, 0, 8, 0], is: .tiff),
        Sniffing("BigTIFF, big endian", [0x4D, 0x4D, 0, 0x2B, 0, 8], is: .tiff),
        Sniffing("JPEG XL codestream", [0xFF, 0x0A, 1, 2], is: .jpegXL),
        Sniffing("JPEG XL container", [0, 0, 0, 12, 0x4A, 0x58, 0x4C, 0x20, 13, 10, 0x87, 10], is: .jpegXL),
        Sniffing("JPEG 2000 container", [0, 0, 0, 12, 0x6A, 0x50, 0x20, 0x20, 13, 10, 0x87, 10], is: .jpeg2000),
        Sniffing("JPEG 2000 codestream", [0xFF, 0x4F, 0xFF, 0x51, 0, 0x29], is: .jpeg2000),
        Sniffing("icon", [0, 0, 1, 0, 1, 0, 16, 16, 0, 0, 1, 0], is: .ico),
        Sniffing("cursor", [0, 0, 2, 0, 1, 0, 32, 32, 0, 0, 1, 0], is: .ico),
        Sniffing("PDF", "%PDF-1.7\n", is: .pdf),
        Sniffing("Photoshop", "8BPS\u{0}\u{1}", is: .psd),
        Sniffing("QOI", "qoif", count: 14, is: .qoi),
        Sniffing("DDS", "DDS |", is: .dds),
        Sniffing("OpenEXR", [0x76, 0x2F, 0x31, 0x01, 2, 0, 0, 0], is: .openEXR),
        Sniffing("Radiance", "#?RADIANCE\nFORMAT", is: .radianceHDR),
        Sniffing("Radiance, short form", "#?RGBE\n", is: .radianceHDR),
        Sniffing("FLIF", "FLIF41", is: .flif),
        Sniffing("BPG", [0x42, 0x50, 0x47, 0xFB, 0], is: .bpg),
        Sniffing("JPEG XR", [0x49, 0x49, 0xBC, 1], is: .jpegXR),
        Sniffing("farbfeld", "farbfeld", count: 16, is: .farbfeld),
        Sniffing("Apple icon", "icns....", is: .icns),
        Sniffing("placeable metafile", [0xD7, 0xCD, 0xC6, 0x9A, 0, 0], is: .wmf),
        Sniffing("enhanced metafile", [1, 0, 0, 0] + [UInt8](repeating: 0, count: 36) + Array(" EMF".utf8), is: .emf),
        Sniffing("GIMP", "gimp xcf v011", is: .xcf),
        Sniffing("Windows bitmap", "BM\u{46}\u{1}", count: 54, is: .bmp),
        Sniffing("PBM, plain", "P1\n# comment\n2 2", is: .netpbm),
        Sniffing("PGM, plain", "P2 2 2 255", is: .netpbm),
        Sniffing("PPM, plain", "P3\t2 2 255", is: .netpbm),
        Sniffing("PBM", "P4\n2 2\n", is: .netpbm),
        Sniffing("PGM", "P5\n2 2\n255\n", is: .netpbm),
        Sniffing("PPM", "P6\r\n2 2\n255\n", is: .netpbm),
        Sniffing("PAM", "P7\nWIDTH 2\n", is: .netpbm),
        Sniffing("PFM, gray", "Pf\n2 2\n-1.0\n", is: .netpbm),
        Sniffing("PFM", "PF\n2 2\n-1.0\n", is: .netpbm),
        Sniffing("TGA with a footer", "\u{0}\u{0}\u{2}" + "........TRUEVISION-XFILE.\u{0}", is: .tga),
        Sniffing("SVG", "<svg xmlns='http://www.w3.org/2000/svg'>", is: .svg),
        Sniffing("SVG with a prologue", "<?xml version='1.0'?>\n<!-- made by hand -->\n<svg>", is: .svg),
        Sniffing("SVG with a byte order mark and spaces", "\u{FEFF}  \n\t<SVG width='1'>", is: .svg),
    ]

    static let brands: [Sniffing] =
        ["avif", "avis"].map { Sniffing(brand: $0, is: .avif) }
        + ["heic", "heix", "hevc", "hevx", "heim", "heis", "hevm", "hevs", "mif1", "mif2", "msf1", "miaf"]
        .map { Sniffing(brand: $0, is: .heif) }
        + ["jp2 ", "jpx ", "jpm "].map { Sniffing(brand: $0, is: .jpeg2000) }
        + [
            Sniffing(brand: "jxl ", is: .jpegXL),
            Sniffing(brand: "mif1", compatible: ["miaf", "avif"], is: .avif),
            Sniffing(brand: "mif1", compatible: ["miaf", "heic"], is: .heif),
            Sniffing(brand: "msf1", compatible: ["iso8", "avis"], is: .avif),
            Sniffing(brand: "avif", compatible: ["mif1", "heic"], is: .avif),
            Sniffing(brand: "heic", compatible: ["mif1", "avif"], is: .heif),
            Sniffing(brand: "mp42", compatible: ["isom", "heic"], is: .heif),
            Sniffing(brand: "isom", is: nil),
            Sniffing(brand: "mp42", compatible: ["isom", "mp41"], is: nil),
            Sniffing(brand: "qt  ", is: nil),
        ]

    static let others: [Sniffing] = [
        Sniffing("nothing", [], is: nil),
        Sniffing("HTML", "<!DOCTYPE html>\n<html><body>Not found</body></html>", is: nil),
        Sniffing("HTML with a drawing", "<html><body><svg></svg></body></html>", is: nil),
        Sniffing("XML without a drawing", "<?xml version='1.0'?><rss></rss>", is: nil),
        Sniffing("text about drawings", "an <svg> is a drawing", is: nil),
        Sniffing("JSON", "{\"error\": \"not found\"}", is: nil),
        Sniffing("JSON array", "[1, 2, 3]", is: nil),
        Sniffing("text", "BMW makes cars, not bitmaps, and P is a letter", is: nil),
        Sniffing("text that begins with P6", "P6x", is: nil),
        Sniffing("netpbm of no known kind", "P8\n2 2\n", is: nil),
        Sniffing("half a JPEG signature", [0xFF, 0xD8], is: nil),
        Sniffing("JPEG start without a marker", [0xFF, 0xD8, 0], is: nil),
        Sniffing("PNG damaged by text mode", [0x89, 0x50, 0x4E, 0x47, 0x0A, 0x1A, 0x0A, 0, 0], is: nil),
        Sniffing("GIF of no known version", "GIF88a...", is: nil),
        Sniffing("WAV", "RIFF....WAVEfmt ", is: nil),
        Sniffing("AVI", "RIFF....AVI LIST", is: nil),
        Sniffing("zip", [0x50, 0x4B, 3, 4, 20, 0], is: nil),
        Sniffing("gzip", [0x1F, 0x8B, 8, 0], is: nil),
        Sniffing("ELF", [0x7F, 0x45, 0x4C, 0x46, 2, 1], is: nil),
        Sniffing("MP3", "ID3\u{4}", count: 64, is: nil),
        Sniffing("zeros", [], count: 600, is: nil),
        Sniffing("short bitmap header", "BM", count: 17, is: nil),
        Sniffing("metafile header without its mark", [1, 0, 0, 0], count: 64, is: nil),
        Sniffing("icon with an odd directory", [0, 0, 1, 0, 1, 0, 16, 16, 0, 7], is: nil),
        Sniffing("a box that is cut", [0, 0, 0, 24] + Array("ftyp".utf8), is: nil),
    ]
}
