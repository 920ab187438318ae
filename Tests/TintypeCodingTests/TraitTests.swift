// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Builds with fewer traits than the default ones.
///
/// `make smallest` runs these tests.
@Suite(.computing) struct TraitTests {
    @Test func `the registry has a coder for WebP only with its trait`() throws {
        let data = try Fixtures.data("flower.webp")
        #if WebP
        #expect(try CoderRegistry().coder(decoding: data).decodableFormats == [.webp])
        #else
        let decoding = #expect(throws: CodingError.self) { try CoderRegistry().coder(decoding: data) }
        #expect(decoding?.code == .unsupportedFormat && decoding?.format == .webp)
        let encoding = #expect(throws: CodingError.self) { try CoderRegistry().coder(encoding: .webp) }
        #expect(encoding?.code == .unsupportedFormat)
        #expect(CoderRegistry().encodableFormats == [.gif, .jpeg, .png])
        #endif
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8]) func `samples are converted only with Little CMS`(
        format: PixelFormat
    ) throws {
        let profile = ICCSample.profile(isGray: format == .gray8)
        let pixels = try PixelBuffer.make(format, width: 16, height: 16) { _, _, _ in 128 }
        let image = Image(pixels: pixels).tagged(with: ColorProfile(data: profile))
        let data = try CoderRegistry().coder(encoding: .png).encode(image, as: .png, options: EncodeOptions())
        let decoder = try ImageDecoder(data, registry: CoderRegistry())
        #expect(decoder.header.colorProfile == profile)
        #expect(try decoder.decode(options: DecodeOptions(color: .keep)).colorProfile?.data == profile)
        let sample = try decoder.decode().pixels.samples[0]
        #if LittleCMS
        // Half the light: a linear profile has it at 128, sRGB at 188.
        #expect((180...196).contains(sample))
        #else
        #expect(sample == 128)
        #expect(decoder.header.colorProfileDescription == nil)
        #endif
    }

    @Test(arguments: 0...9) func `every level of PNG gives the pixels back, with and without ISA-L`(level: Int) throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 301, height: 217)
        let coder = try CoderRegistry().coder(encoding: .png)
        let data = try coder.encode(Image(pixels: pixels), as: .png, options: EncodeOptions(pngLevel: level))
        #expect(try ImageDecoder(data, registry: CoderRegistry()).decode().pixels.samples == pixels.samples)
    }
}
