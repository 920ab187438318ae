// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@Suite(.computing) struct CoderRegistryTests {
    private let gif = Data("GIF89a and so on".utf8)

    @Test(arguments: [ImageFormat.jpeg, .png, .webp]) func `has the coders of the library`(format: ImageFormat) throws {
        let registry = CoderRegistry()
        #expect(try registry.coder(encoding: format).encodableFormats.contains(format))
        let data = try SampleFiles.smooth(format)
        #expect(try registry.coder(decoding: data).decodableFormats.contains(format))
    }

    @Test func `the last registered is asked first`() throws {
        let registry = CoderRegistry(coders: [])
        for name in ["first", "second", "third"] {
            registry.register(NamedCoder(name: name, formats: [.gif]))
            #expect(try self.nameOfDecoder(in: registry) == name)
            #expect((try registry.coder(encoding: .gif) as? NamedCoder)?.name == name)
        }
    }

    @Test func `a format that no coder writes is an error that names those that are written`() throws {
        let error = #expect(throws: CodingError.self) { try CoderRegistry().coder(encoding: .tiff) }
        #expect(error?.code == .unsupportedFormat)
        #expect(error?.message.contains("choose one of gif, jpeg, png, webp, or add a coder") == true)
        #expect(CoderRegistry(coders: []).encodableFormats.isEmpty)
        #expect(CoderRegistry().encodableFormats == [.gif, .jpeg, .png, .webp])
    }

    @Test func `coders of other formats are passed over`() throws {
        let registry = CoderRegistry(coders: [NamedCoder(name: "gif", formats: [.gif])])
        registry.register(NamedCoder(name: "tiff", formats: [.tiff]))
        #expect(try self.nameOfDecoder(in: registry) == "gif")
    }

    @Test func `a token takes its own registration back`() throws {
        let registry = CoderRegistry(coders: [])
        let first = registry.register(NamedCoder(name: "first", formats: [.gif]))
        let second = registry.register(NamedCoder(name: "second", formats: [.gif]))
        #expect(first != second)
        registry.unregister(second)
        #expect(try self.nameOfDecoder(in: registry) == "first")
        registry.unregister(second)
        #expect(try self.nameOfDecoder(in: registry) == "first")
        registry.unregister(first)
        #expect(throws: CodingError.self) { try registry.coder(decoding: self.gif) }
    }

    @Test(arguments: [
        ("GIF89a..........", ImageFormat.gif), ("%PDF-1.7", .pdf), ("8BPS....", .psd),
        ("\0\0\0\u{18}ftypavif\0\0\0\0mif1", .avif), ("<svg xmlns=''/>", .svg),
    ])
    func `an unreadable format is named`(text: String, format: ImageFormat) {
        let registry = CoderRegistry(coders: [])
        let error = #expect(throws: CodingError.self) { try registry.coder(decoding: Data(text.utf8)) }
        #expect(error?.code == .unsupportedFormat)
        #expect(error?.format == format)
        #expect(error?.message.contains(format.name) == true)
        #expect(error?.description == "unsupportedFormat: \(error?.message ?? "")")
    }

    @Test(arguments: [ImageFormat.avif, .heif, .psd, .svg]) func `a format that nobody writes is named`(
        format: ImageFormat
    ) {
        let error = #expect(throws: CodingError.self) { try CoderRegistry().coder(encoding: format) }
        #expect(error?.code == .unsupportedFormat)
        #expect(error?.format == format)
        #expect(error?.message.contains(format.name) == true)
    }

    @Test func `a given coder bypasses the registry and the signature`() throws {
        let coder = NamedCoder(name: "given", formats: [])
        let decoder = try ImageDecoder(Data("no signature".utf8), registry: CoderRegistry(coders: []), coder: coder)
        #expect((decoder.header.pixelWidth, decoder.header.pixelHeight) == (5, 4))
        let image = try decoder.decode()
        #expect((image.width, image.height) == (4, 5))
        #expect(image.orientation == .up)
    }

    @Test func `the header of a given coder is held to the limits`() {
        let coder = NamedCoder(name: "given", formats: [])
        let error = #expect(throws: CodingError.self) {
            try ImageDecoder(Data([1]), registry: CoderRegistry(), coder: coder, limits: .init(maximumPixels: 19))
        }
        #expect(error?.code == .tooManyPixels)
    }

    @Test func `a coder brings a format of its own`() throws {
        let registry = CoderRegistry()
        let file = Data("SQUARES, and so on".utf8)
        #expect(throws: CodingError.self) { try registry.coder(decoding: file) }
        let token = registry.register(NamedCoder(name: "squares", formats: [.squares]))
        #expect((try registry.coder(decoding: file) as? NamedCoder)?.name == "squares")
        #expect((try registry.coder(encoding: .squares) as? NamedCoder)?.name == "squares")
        #expect(registry.ownFormats == [.squares])
        #expect(registry.decodableFormats.first == .squares)
        #expect(try registry.coder(decoding: self.gif) is GIFCoder)
        registry.unregister(token)
        #expect(registry.ownFormats == [])
        #expect(throws: CodingError.self) { try registry.coder(decoding: file) }
    }

    @Test func `a format of a coder's own is looked for before known ones`() throws {
        let format = ImageFormat(name: "ours", mediaType: "image/x-gif") { $0.starts(with: "GIF8".utf8) }
        let registry = CoderRegistry()
        registry.register(NamedCoder(name: "ours", formats: [format]))
        #expect(try self.nameOfDecoder(in: registry) == "ours")
    }

    @Test func `can be changed while it is asked`() async throws {
        let registry = CoderRegistry()
        let data = try SampleFiles.smooth(.png)
        try await withThrowingTaskGroup { group in
            for index in 0..<50 {
                group.addTask {
                    let token = registry.register(NamedCoder(name: "\(index)", formats: [.gif]))
                    _ = try registry.coder(decoding: data)
                    registry.unregister(token)
                }
            }
            try await group.waitForAll()
        }
        #expect(throws: CodingError.self) { try CoderRegistry(coders: []).coder(encoding: .gif) }
    }

    private func nameOfDecoder(in registry: CoderRegistry) throws -> String? {
        (try registry.coder(decoding: self.gif) as? NamedCoder)?.name
    }
}

extension ImageFormat {
    fileprivate static let squares = ImageFormat(
        name: "squares",
        mediaType: "image/x-squares",
        fileExtensions: ["sq"],
        matches: { $0.starts(with: "SQUARES".utf8) }
    )
}

/// A coder whose images have 5 by 4 pixels and are stored sideways.
private struct NamedCoder: ImageCoder {
    let name: String
    let formats: Set<ImageFormat>

    var decodableFormats: Set<ImageFormat> { self.formats }
    var encodableFormats: Set<ImageFormat> { self.formats }

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage { SidewaysImage() }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        Data(self.name.utf8)
    }
}

private struct SidewaysImage: EncodedImage {
    var header: ImageHeader {
        var header = ImageHeader(format: .gif, pixelWidth: 5, pixelHeight: 4)
        header.orientation = .right
        return header
    }

    func decode(options: DecodeOptions) throws -> DecodedImage {
        DecodedImage(Image(pixels: try PixelBuffer.smooth(.rgb8, width: 5, height: 4), orientation: .right))
    }
}
