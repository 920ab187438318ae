// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@Suite(.computing, .timeLimit(.minutes(10))) struct LimitTests {
    @Test(arguments: [ImageFormat.jpeg, .png, .webp]) func `a long side is refused`(format: ImageFormat) throws {
        let data = try SampleFiles.smooth(format, width: 60, height: 40)
        let error = Self.refusal(of: data, DecodingLimits(maximumSide: 59))
        #expect(error?.code == .sideTooLong)
        #expect(error?.format == format)
        #expect(error?.message.contains("60x40") == true)
        #expect(error?.message.contains("59") == true)
        #expect(error?.message.contains("raise that limit") == true)
        #expect(Self.refusal(of: data, DecodingLimits(maximumSide: 60)) == nil)
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp]) func `too many pixels are refused`(format: ImageFormat) throws {
        let data = try SampleFiles.smooth(format, width: 60, height: 40)
        let error = Self.refusal(of: data, DecodingLimits(maximumPixels: 2_399))
        #expect(error?.code == .tooManyPixels)
        #expect(error?.format == format)
        #expect(error?.message.contains("60x40") == true)
        #expect(error?.message.contains("2399") == true)
        #expect(error?.message.contains("raise that limit") == true)
        #expect(Self.refusal(of: data, DecodingLimits(maximumPixels: 2_400)) == nil)
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp]) func `too many bytes are refused`(format: ImageFormat) throws {
        let data = try SampleFiles.smooth(format)
        let error = Self.refusal(of: data, DecodingLimits(maximumEncodedBytes: data.count - 1))
        #expect(error?.code == .tooManyBytes)
        #expect(error?.message.contains("\(data.count) ") == true)
        #expect(error?.message.contains("\(data.count - 1)") == true)
        #expect(error?.message.contains("raise that limit") == true)
        #expect(Self.refusal(of: data, DecodingLimits(maximumEncodedBytes: data.count)) == nil)
    }

    @Test func `the defaults are the loaders`() {
        let limits = DecodingLimits()
        #expect(limits.maximumPixels == 100_000_000)
        #expect(limits.maximumSide == 32_768)
        #expect(limits.maximumEncodedBytes == 67_108_864)
        #expect(limits.maximumWork == 1_000_000_000)
        #expect(limits.maximumFrames == 10_000)
        #expect(limits.maximumAnimationPixels == 500_000_000)
    }

    @Test(arguments: [
        (10_001, 10_000, CodingError.Code.tooManyPixels), (65_535, 65_535, .sideTooLong), (32_769, 1, .sideTooLong),
        (1, 65_535, .sideTooLong),
    ])
    func `the defaults refuse huge images`(width: Int, height: Int, code: CodingError.Code) throws {
        #expect(Self.refusal(of: try SampleFiles.jpeg(declaring: width, height), DecodingLimits())?.code == code)
        #expect(Self.refusal(of: PNGFile(declaring: width, height).data, DecodingLimits())?.code == code)
    }

    @Test func `sides whose product overflows are refused`() {
        let limits = DecodingLimits(maximumPixels: .max, maximumSide: .max)
        let side = Int(Int32.max)
        // The product fits in an integer, but no layout is that large.
        let data = PNGFile(declaring: side, side).data
        #expect(throws: (any Error).self) { try SampleFiles.decode(data, DecodeOptions(limits: limits)) }
    }

    /// Runs in a process of its own, whose memory no other test uses.
    @Test func `a declared size costs no memory`() async {
        await #expect(processExitsWith: .success) {
            let files = [try SampleFiles.jpeg(declaring: 65_535, 65_535), PNGFile(declaring: 65_535, 65_535).data]
            _ = try SampleFiles.decode(try SampleFiles.smooth(.png))
            let before = ThisProcess.residentBytes
            for _ in 0..<100 {
                for data in files {
                    let isRefused = (try? ImageDecoder(data, registry: SampleFiles.registry)) == nil
                    precondition(isRefused)
                }
            }
            let grown = ThisProcess.residentBytes - before
            precondition(grown < 16 << 20, "refusing cost \(grown) bytes")
        }
    }

    @Test func `the memory of a decode is known before`() throws {
        for (format, pixelFormat) in [(ImageFormat.jpeg, PixelFormat.rgb8), (.png, .rgba8), (.webp, .rgb8)] {
            let data = try SampleFiles.smooth(format, pixelFormat, width: 100, height: 80)
            let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
            let bytes = 100 * 80 * pixelFormat.channelCount
            #expect(decoder.byteCount(options: DecodeOptions()) >= bytes)
            // The libraries' tables have a fixed size, however small the image is.
            #expect(decoder.byteCount(options: DecodeOptions()) <= bytes * 3 + 128 << 10)
        }
    }

    private static func refusal(of data: Data, _ limits: DecodingLimits) -> CodingError? {
        do {
            _ = try ImageDecoder(data, registry: SampleFiles.registry, limits: limits)
            return nil
        } catch {
            return error as? CodingError
        }
    }
}
