import FoundationEssentials
import TestSupport
import Testing
import TintypeImage

@testable import TintypeCoding

/// What the memory gate is told is what GIFs and WebPs take.
@Suite(.timeLimit(.minutes(5)), .enabled(if: AllocatedMemory.isMeasured)) struct AnimationMemoryTests {
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
        let picture = try WebPSamples.picture(pixels, compression)
        let frame = WebPSamples.frame(picture, width: self.width, height: self.height, flags: flags)
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
            if let data = try? Self.animatedWebP(compression, format, flags: 0) { files.append(("moving " + name, data)) }
            if let data = try? Self.animatedWebP(compression, format, flags: 2) {
                files.append(("moving and replacing " + name, data))
            }
        }
        return files.flatMap { name, data in
            [DecodeKind.picture, .frame, .incremental].map { Case(name: name, kind: $0, data: data) }
        }
    }()

    @Test(arguments: Self.cases) func `what is counted is taken`(file: Case) throws {
        let coder = try SampleFiles.registry.coder(decoding: file.data)
        let header = try coder.header(of: file.data)
        let options = DecodeOptions()
        let counted = coder.byteCount(for: file.kind, header: header, options: options)
        let (_, taken) = try AllocatedMemory.peak {
            switch file.kind {
            case .picture, .rows: try Self.decode(file.data)
            case .frame: try Self.play(file.data)
            case .incremental: try Self.preview(file.data, header.format)
            }
        }
        #expect(Double(taken) <= Double(counted) * 1.1, "\(taken) of \(counted)")
        #expect(Double(taken) >= Double(counted) * 0.9, "\(taken) of \(counted)")
    }

    @Test func `the first frame of a GIF that is taken back takes one canvas`() throws {
        let back = HostileGIF.Frame(width: Self.width, height: Self.height, disposal: 3)
        let data = Self.gif([back, back])
        let (_, taken) = try AllocatedMemory.peak { try Self.decode(data) }
        #expect(taken < Self.width * Self.height * 5 + 4 << 20)
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
