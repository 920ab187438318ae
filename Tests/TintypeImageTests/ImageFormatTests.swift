import TestSupport
import Testing
import TintypeImage

@Suite struct ImageFormatTests {
    @Test(arguments: ImageFormat.all) func isFoundByItsName(format: ImageFormat) {
        #expect(ImageFormat(name: format.name) == format)
        #expect(ImageFormat(name: format.name.uppercased()) == format)
        #expect(format.description == format.name)
        #expect(format.name == format.name.lowercased())
    }

    @Test func namesAndMediaTypesAreDistinct() {
        #expect(Set(ImageFormat.all).count == ImageFormat.all.count)
        #expect(Set(ImageFormat.all.map(\.name)).count == ImageFormat.all.count)
        #expect(Set(ImageFormat.all.map(\.mediaType)).count == ImageFormat.all.count)
        #expect(Set(ImageFormat.all.map(\.fileExtension)).count == ImageFormat.all.count)
    }

    @Test(arguments: [
        ("jpg", ImageFormat.jpeg), ("JPG", .jpeg), ("JPEG", .jpeg), ("png", .png), ("webp", .webp), ("gif", .gif),
    ])
    func understandsTheUsualNames(name: String, format: ImageFormat) {
        #expect(ImageFormat(name: name) == format)
    }

    @Test(arguments: ["", " ", "jpe", "image/png", "tintype"]) func otherNamesAreNone(name: String) {
        #expect(ImageFormat(name: name) == nil)
    }

    @Test(arguments: [
        (ImageFormat.jpeg, "jpg", "image/jpeg"), (.png, "png", "image/png"), (.webp, "webp", "image/webp"),
        (.gif, "gif", "image/gif"), (.avif, "avif", "image/avif"), (.heif, "heic", "image/heif"),
        (.jpegXL, "jxl", "image/jxl"), (.svg, "svg", "image/svg+xml"), (.pdf, "pdf", "application/pdf"),
        (.tiff, "tiff", "image/tiff"), (.bmp, "bmp", "image/bmp"), (.jpeg2000, "jp2", "image/jp2"),
    ])
    func hasTheUsualExtensionAndMediaType(format: ImageFormat, fileExtension: String, mediaType: String) {
        #expect(format.fileExtension == fileExtension)
        #expect(format.mediaType == mediaType)
    }
}
