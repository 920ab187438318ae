// SPDX-License-Identifier: Apache-2.0

#if WebP
import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Checks that decodes of GIFs and WebPs take as much memory as the memory gate counts for them.
@Suite(.computing, .timeLimit(.minutes(10)), .enabled(if: AllocatedMemory.isMeasured)) struct AnimationMemoryTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let kind: DecodeKind
        let data: Data

        var testDescription: String { "\(self.name), \(self.kind)" }
    }

    private static let (width, height) = (1_000, 800)

    private static func gif(_ frames: [HostileGIF.Frame]) -> Data {
        HostileGIF.file(width: self.width, height: self.height, frames: frames)
    }

    private static func webp(_ compression: EncodeOptions.Compression, _ format: PixelFormat) throws -> Data {
        let options = EncodeOptions(quality: 50, compression: compression)
        let pixels = try PixelBuffer.smooth(format, width: self.width, height: self.height)
        return try WebPCoder().encode(Image(pixels: pixels), as: .webp, options: options)
    }

    private static func animatedWebP(
        _ compression: EncodeOptions.Compression,
        _ format: PixelFormat,
        flags: UInt8
    ) throws -> Data {
        let pixels = try PixelBuffer.smooth(format, width: self.width, height: self.height)
        let image = try WebPSamples.image(pixels, compression)
        let frame = WebPSamples.frame(image, width: self.width, height: self.height, flags: flags)
        return WebPSamples.file(
            [WebPSamples.extended(2, self.width, self.height), WebPSamples.timing(loopCount: 0), frame, frame, frame]
        )
    }

    static let cases: [Case] = {
        let plain = HostileGIF.Frame(width: Self.width, height: Self.height)
        let clear = HostileGIF.Frame(width: Self.width, height: Self.height, transparentIndex: 0)
        let back = HostileGIF.Frame(width: Self.width, height: Self.height, disposal: 3, transparentIndex: 3)
        var files: [(String, Data)] = [
            ("GIF", Self.gif([plain])), ("GIF with transparency", Self.gif([clear])),
            ("GIF that is taken back from the start", Self.gif([back, back, back])),
            ("GIF that is taken back", Self.gif([plain, back, back])),
        ]
        let stills: [(String, EncodeOptions.Compression, PixelFormat)] = [
            ("lossy WebP", .lossy, .rgb8), ("lossless WebP", .lossless, .rgb8),
            ("lossless WebP with alpha", .lossless, .rgba8),
        ]
        for (name, compression, format) in stills {
            if let data = try? Self.webp(compression, format) { files.append((name, data)) }
            if let data = try? Self.animatedWebP(compression, format, flags: 0) {
                files.append(("moving " + name, data))
            }
            if let data = try? Self.animatedWebP(compression, format, flags: 2) {
                files.append(("moving and replacing " + name, data))
            }
        }
        return files.flatMap { name, data in
            [DecodeKind.image, .frame, .incremental].map { Case(name: name, kind: $0, data: data) }
        }
    }()

    @Test(arguments: Self.cases) func `what is counted is taken`(file: Case) throws {
        let coder = try SampleFiles.registry.coder(decoding: file.data)
        let encoded = try coder.open(file.data)
        let options = DecodeOptions()
        let counted = encoded.byteCount(for: file.kind, options: options)
        let (_, taken) = try AllocatedMemory.peak {
            switch file.kind {
            case .image, .rows: try Self.decode(file.data)
            case .frame: try Self.play(file.data)
            case .incremental: try Self.preview(file.data, encoded.header.format)
            }
        }
        #expect(Double(taken) <= Double(counted) * 1.1, "\(taken) of \(counted)")
        // The decoder counts the largest possible tables, because their real size is only known once they are read.
        let pixelCount = file.name.contains("lossless") ? Self.width * Self.height : 0
        let tables = VP8LPrefixCodes.byteCount(
            pixelCount: pixelCount,
            tileCount: pixelCount / 16,
            streamByteCount: pixelCount > 0 ? file.data.count : 0
        )
        #expect(Double(taken) >= Double(counted - tables) * 0.9, "\(taken) of \(counted)")
    }

    /// The tables of this file take most of the memory.
    @Test func `prefix codes are counted`() throws {
        let data = HostileWebP.prefixCodes(groupCount: 4_000, hasPixels: true)
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        for kind in [DecodeKind.image, .rows, .incremental] {
            let counted = decoder.byteCount(for: kind, options: DecodeOptions())
            let (_, taken) = try AllocatedMemory.peak {
                switch kind {
                case .image, .frame: try Self.decode(data)
                case .incremental: try Self.preview(data, .webp)
                case .rows:
                    _ = try decoder.withRows(options: DecodeOptions()) { rows, _, _ in
                        let row = UnsafeMutableRawBufferPointer.allocate(
                            byteCount: rows.layout.planes[0].bytesPerRow,
                            alignment: PixelLayout.alignment
                        )
                        defer { row.deallocate() }
                        try rows.readRow(into: row)
                    }
                }
            }
            #expect(taken > 16 << 20)
            #expect(abs(counted - taken) <= counted / 10, "\(kind): \(taken) of \(counted)")
        }
    }

    @Test func `the first frame of a GIF that is taken back takes one canvas`() throws {
        let back = HostileGIF.Frame(width: Self.width, height: Self.height, disposal: 3)
        let data = Self.gif([back, back])
        let (_, taken) = try AllocatedMemory.peak { try Self.decode(data) }
        #expect(taken < Self.width * Self.height * 5 + 4 << 20)
    }

    @Test func `prefix codes take little more memory than pixels, or are refused`() throws {
        // The decoder accepts a file with few tables.
        let few = HostileWebP.prefixCodes(groupCount: 300, hasPixels: true)
        #expect(try SampleFiles.decode(few).width == 1_024)
        let many = HostileWebP.prefixCodes(groupCount: 8_192, hasPixels: false)
        #expect(many.count < 300_000)
        let (error, taken) = AllocatedMemory.peak {
            #expect(throws: CodingError.self) { try SampleFiles.decode(many) }
        }
        #expect(error?.code == .unsupportedFeature)
        #expect(taken < 40 << 20)
    }

    /// libwebp decodes the alpha of a lossy image, and stores 12 kB for each group.
    @Test(arguments: [1, 1 << 10, .max])
    func `prefix codes of alpha take little more memory than pixels, or are refused`(pieceSize: Int) throws {
        func decode(_ data: Data) throws -> PixelBuffer {
            guard pieceSize < .max else { return try SampleFiles.decode(data).pixels }
            let decoder = try #require(
                try WebPCoder().makeIncrementalDecoder(for: .webp, options: DecodeOptions())
            )
            // Single bytes only as far as the start of the alpha, larger pieces from there.
            let start = pieceSize == 1 ? 100 : 0
            for offset in 0..<start { try decoder.append(data.dropFirst(offset).prefix(1)) }
            for offset in stride(from: start, to: data.count, by: max(1 << 10, pieceSize)) {
                try decoder.append(data.dropFirst(offset).prefix(max(1 << 10, pieceSize)))
            }
            return try decoder.finish().image.pixels
        }
        let few = try HostileWebP.alphaCodes(groupCount: 300, hasPixels: true)
        #expect(try decode(few).format == .rgba8)
        let many = try HostileWebP.alphaCodes(groupCount: 8_192, hasPixels: false)
        #expect(many.count < 300_000)
        let (error, taken) = AllocatedMemory.peak {
            #expect(throws: CodingError.self) { try decode(many) }
        }
        #expect(error?.code == .unsupportedFeature)
        #expect(taken < 16 << 20, "\(taken)")
    }

    /// The tiles of two transforms take half a byte for each pixel.
    @Test func `transforms with the smallest tiles are counted`() throws {
        let data = HostileWebP.transforms(width: 2_000, height: 1_600)
        #expect(data.count < 100)
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        let counted = decoder.byteCount(options: DecodeOptions())
        let (_, taken) = try AllocatedMemory.peak { try decoder.decode() }
        #expect(abs(counted - taken) <= counted / 20, "\(taken) of \(counted)")
    }

    /// Missing pixels become transparent if the options allow a truncated file.
    @Test func `a GIF whose pixels may be missing is counted with alpha`() throws {
        var data = Self.gif([HostileGIF.Frame(width: Self.width, height: Self.height)])
        data.removeLast(data.count / 3)
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        #expect(!decoder.header.hasAlpha)
        let options = DecodeOptions(allowsTruncated: true)
        let counted = decoder.byteCount(options: options)
        let (image, taken) = try AllocatedMemory.peak { try decoder.decode(options: options) }
        #expect(image.pixels.format == .rgba8)
        #expect(abs(counted - taken) <= counted / 10, "\(taken) of \(counted)")
    }

    private static func decode(_ data: Data) throws {
        _ = try ImageDecoder(data, registry: SampleFiles.registry).decodeStored()
    }

    private static func play(_ data: Data) throws {
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        guard let compositor = try decoder.makeCompositor() else { return try self.decode(data) }
        for index in 0..<decoder.header.animation.frameCount { _ = try compositor.frame(at: index) }
    }

    private static func preview(_ data: Data, _ format: ImageFormat) throws {
        let coder = try SampleFiles.registry.coder(decoding: data)
        let decoder = try #require(try coder.makeIncrementalDecoder(for: format, options: DecodeOptions()))
        try decoder.append(data)
        _ = try #require(try decoder.preview())
    }
}
#endif
