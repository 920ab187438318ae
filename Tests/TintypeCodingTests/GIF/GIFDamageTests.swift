// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// GIFs that are truncated, broken or hostile.
@Suite(.computing, .timeLimit(.minutes(5))) struct GIFDamageTests {
    private let coder = GIFCoder()

    /// At each length, the decoder throws an error or returns the part of the image that it has.
    @Test func `a file may end anywhere`() throws {
        let sample = GIFSamples.animations[1]
        let frames = try sample.frames.prefix(2).map {
            AnimationContent.Frame(image: try GIFSamples.image($0, width: sample.width), milliseconds: 50)
        }
        let data = try self.coder.encode(AnimationContent(frames: frames), as: .gif, options: EncodeOptions())
        var shown = 0
        for count in 0..<data.count - 1 {
            let part = data.prefix(count)
            // A strict decode may only succeed if the first frame is complete. The end block may be missing.
            let strict = Result { try self.decode(part, DecodeOptions()) }
            guard let lenient = try? self.decode(part, DecodeOptions(allowsTruncated: true)) else {
                #expect(throws: CodingError.self) { try strict.get() }
                continue
            }
            #expect(lenient.count == sample.frames[0].count)
            #expect(zip(lenient, sample.frames[0]).allSatisfy { $0 == 0 || $0 == $1 })
            let known = lenient.count { $0 != 0 }
            #expect(known >= shown)
            shown = known
            if let strict = try? strict.get() { #expect(strict == sample.frames[0]) }
        }
        #expect(shown == sample.frames[0].count { $0 != 0 })
    }

    /// Flipped bits never crash the decoder, and never show pixels that were not written.
    @Test func `any bit may flip`() throws {
        let sample = GIFSamples.animations[0]
        let image = try GIFSamples.image(sample.frames[0], width: sample.width)
        let data = try self.coder.encode(image, as: .gif, options: EncodeOptions())
        let limits = DecodingLimits(maximumPixels: 1_000_000)
        for place in 0..<min(data.count, 100) * 8 {
            var damaged = data
            damaged[place / 8] ^= 1 << UInt8(place % 8)
            for allowsTruncated in [false, true] {
                let options = DecodeOptions(limits: limits, allowsTruncated: allowsTruncated)
                guard let decoder = try? ImageDecoder(damaged, registry: CoderRegistry(), limits: limits) else {
                    continue
                }
                let first = (try? decoder.decode(options: options)).map {
                    GIFCorpus.digest(GIFCorpus.pixels(of: $0.pixels))
                }
                let second = (try? decoder.decode(options: options)).map {
                    GIFCorpus.digest(GIFCorpus.pixels(of: $0.pixels))
                }
                #expect(first == second)
            }
        }
    }

    @Test func `too many frames are refused before they take memory`() throws {
        var data = Data("GIF89a\u{1}\0\u{1}\0\0\0\0".utf8)
        let frame: [UInt8] = [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 0]
        for _ in 0..<100_000 { data.append(contentsOf: frame) }
        let (error, peak) = AllocatedMemory.peak {
            #expect(throws: CodingError.self) { try ImageDecoder(data, registry: CoderRegistry()) }
        }
        #expect(error?.code == .tooManyFrames)
        #expect(peak < 4 << 20)
    }

    /// The small screen passes the limits, so the decoder must check the size of the image itself.
    @Test func `an image over the limits is refused`() throws {
        let data = Self.file(width: 4, height: 4, imageSide: 40_000, codes: [0x44, 0x01])
        let decoder = try ImageDecoder(data, registry: CoderRegistry())
        let error = #expect(throws: CodingError.self) { try decoder.decode() }
        #expect(error?.code == .tooManyPixels)
    }

    /// The decoder decodes and stores only the part of a large image that lies on the screen.
    @Test func `an image is cut at the screen`() throws {
        let source = (0..<100 * 60).map { GIFSamples.color($0 * 13 % 200) }
        var data = try self.coder.encode(
            try GIFSamples.image(source, width: 100),
            as: .gif,
            options: EncodeOptions()
        )
        data[6] = 30
        data[8] = 20
        let decoded = try self.decode(data, DecodeOptions())
        let expected = (0..<20).flatMap { row in source[row * 100..<row * 100 + 30] }
        #expect(decoded == expected)
    }

    @Test func `text before the first image is not supported`() throws {
        var data = Data("GIF89a\u{1}\0\u{1}\0\u{0}\0\0".utf8)
        data.append(contentsOf: [0x21, 0x01, 1, 0, 0])
        data.append(Self.file(width: 1, height: 1, imageSide: 1, codes: [0x44, 0x01]).dropFirst(13))
        let error = #expect(throws: CodingError.self) { try self.decode(data, DecodeOptions()) }
        #expect(error?.code == .unsupportedFeature)
        #expect(try self.decode(data, DecodeOptions(allowsTruncated: true)) == [0xFF00_0000])
    }

    @Test func `bytes behind the end are ignored`() throws {
        let data = Self.file(width: 1, height: 1, imageSide: 1, codes: [0x44, 0x01])
        #expect(try self.decode(data + Data("GIF89a and more".utf8), DecodeOptions()) == [0xFF00_0000])
        #expect(try self.decode(data.dropLast(), DecodeOptions()) == [0xFF00_0000])
        #expect(try self.decode(data.dropLast() + Data([0, 0, 0x47, 0x2C]), DecodeOptions()) == [0xFF00_0000])
    }

    @Test(.enabled(if: !CrashFiles.named("gif-").isEmpty), arguments: CrashFiles.named("gif-"))
    func `what crashed once is harmless`(_ file: URL) throws {
        let data = try Data(contentsOf: file)
        let limits = DecodingLimits(maximumPixels: 1_000_000)
        for allowsTruncated in [false, true] {
            let options = DecodeOptions(limits: limits, allowsTruncated: allowsTruncated)
            guard let encoded = try? self.coder.open(data) else { continue }
            let whole = try? encoded.decode(options: options).image.pixels
            let pieces = try? self.decodePieces(data, options)
            #expect(whole.map(GIFCorpus.pixels) == pieces.map(GIFCorpus.pixels))
            #expect(whole?.format == pieces?.format)
            guard let reader = try? encoded.frameReader(options: options) else {
                continue
            }
            for index in reader.frames.indices.prefix(20) { _ = try? reader.pixels(of: index) }
        }
    }

    private func decode(_ data: Data, _ options: DecodeOptions) throws -> [UInt32] {
        GIFCorpus.pixels(of: try ImageDecoder(data, registry: CoderRegistry()).decode(options: options).pixels)
    }

    private func decodePieces(_ data: Data, _ options: DecodeOptions) throws -> PixelBuffer? {
        let decoder = try self.coder.makeIncrementalDecoder(for: .gif, options: options)
        for byte in data { try decoder?.append(Data([byte])) }
        return try decoder?.finish().image.pixels
    }

    /// Returns a file without a palette, with one square image.
    private static func file(width: UInt16, height: UInt16, imageSide: UInt16, codes: [UInt8]) -> Data {
        func bytes(_ number: UInt16) -> [UInt8] { [UInt8(number & 255), UInt8(number >> 8)] }
        var data = Data("GIF89a".utf8)
        data.append(contentsOf: bytes(width) + bytes(height) + [0, 0, 0])
        data.append(contentsOf: [0x2C, 0, 0, 0, 0] + bytes(imageSide) + bytes(imageSide) + [0, 2])
        data.append(contentsOf: [UInt8(codes.count)] + codes + [0, 0x3B])
        return data
    }
}
