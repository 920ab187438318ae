// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage

@Suite struct ImageFormatTests {
    @Test(arguments: ImageFormat.all) func `is found by its name`(format: ImageFormat) {
        #expect(ImageFormat(name: format.name) == format)
        #expect(ImageFormat(name: format.name.uppercased()) == format)
        #expect(format.description == format.name)
        #expect(format.name == format.name.lowercased())
    }

    @Test func `names and media types are distinct`() {
        #expect(Set(ImageFormat.all).count == ImageFormat.all.count)
        #expect(Set(ImageFormat.all.map(\.name)).count == ImageFormat.all.count)
        #expect(Set(ImageFormat.all.map(\.mediaType)).count == ImageFormat.all.count)
        #expect(Set(ImageFormat.all.map(\.fileExtension)).count == ImageFormat.all.count)
    }

    @Test(arguments: [
        ("jpg", ImageFormat.jpeg), ("JPG", .jpeg), ("JPEG", .jpeg), ("png", .png), ("webp", .webp), ("gif", .gif),
    ])
    func `understands the usual names`(name: String, format: ImageFormat) {
        #expect(ImageFormat(name: name) == format)
    }

    @Test(arguments: ["", " ", "jpe", "image/png", "tintype"]) func `other names are none`(name: String) {
        #expect(ImageFormat(name: name) == nil)
    }

    @Test(arguments: [
        (ImageFormat.jpeg, "jpg", "image/jpeg"), (.png, "png", "image/png"), (.webp, "webp", "image/webp"),
        (.gif, "gif", "image/gif"), (.avif, "avif", "image/avif"), (.heif, "heic", "image/heif"),
        (.jpegXL, "jxl", "image/jxl"), (.svg, "svg", "image/svg+xml"), (.pdf, "pdf", "application/pdf"),
        (.tiff, "tiff", "image/tiff"), (.bmp, "bmp", "image/bmp"), (.jpeg2000, "jp2", "image/jp2"),
    ])
    func `has the usual extension and media type`(format: ImageFormat, fileExtension: String, mediaType: String) {
        #expect(format.fileExtension == fileExtension)
        #expect(format.mediaType == mediaType)
    }

    private static let squares = ImageFormat(
        name: "Squares",
        mediaType: "image/x-squares",
        fileExtensions: ["SQ", "squares"],
        matches: { $0.starts(with: [0x53, 0x51]) }
    )

    @Test func `a format of a coder's own says what it is called`() {
        let format = Self.squares
        #expect(!format.isKnown)
        #expect(format.name == "squares")
        #expect(format.description == "squares")
        #expect(format.mediaType == "image/x-squares")
        #expect(format.fileExtension == "sq")
        #expect(format.fileExtensions == ["sq", "squares"])
    }

    @Test func `a format of a coder's own is found where it is given`() {
        let formats = [Self.squares]
        #expect(ImageFormat(name: "SQUARES", among: formats) == Self.squares)
        #expect(ImageFormat(name: "png", among: formats) == .png)
        #expect(ImageFormat(name: "squares") == nil)
        #expect(ImageFormat(fileExtension: "sq", among: formats) == Self.squares)
        #expect(ImageFormat(fileExtension: "jpe", among: formats) == .jpeg)
        #expect(ImageFormat(fileExtension: "sq") == nil)
        #expect(ImageFormat(sniffing: [0x53, 0x51, 0], among: formats) == Self.squares)
        #expect(ImageFormat(sniffing: [0x53, 0x51, 0]) == nil)
    }

    @Test func `a signature is given the start of a file`() {
        let format = ImageFormat(name: "long", mediaType: "image/x-long") { $0.count == ImageFormat.signatureLength }
        #expect(ImageFormat(sniffing: [UInt8](repeating: 1, count: 2_000), among: [format]) == format)
        #expect(ImageFormat(sniffing: [UInt8](repeating: 1, count: 100), among: [format]) == nil)
    }

    @Test func `formats are equal where their names are`() {
        let same = ImageFormat(name: "squares", mediaType: "image/squares", matches: { _ in false })
        #expect(same == Self.squares)
        #expect(Set([same, Self.squares, .png, .png]).count == 2)
        #expect(Self.squares != .png)
        #expect(same.fileExtension == "squares")
    }
}
