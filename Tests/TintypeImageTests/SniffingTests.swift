// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeImage
import TintypeTestSupport

@Suite struct SniffingTests {
    @Test(arguments: Sniffing.images + Sniffing.brands + Sniffing.others)
    func `recognises the format`(of body: Sniffing) {
        #expect(ImageFormat(sniffing: body.bytes) == body.format)
    }

    @Test func `every format is reached`() {
        let reached = Set((Sniffing.images + Sniffing.brands).compactMap(\.format))
        #expect(Set(ImageFormat.all).subtracting(reached) == [])
        #expect(Sniffing.images.count >= 45)
    }

    @Test(arguments: Sniffing.images) func `a tiny prefix is no image`(of body: Sniffing) {
        for count in 0..<2 {
            #expect(ImageFormat(sniffing: body.bytes.prefix(count)) == nil)
        }
    }

    @Test(arguments: Sniffing.images + Sniffing.brands + Sniffing.others)
    func `a prefix is its format or nothing`(of body: Sniffing) {
        for count in 0...body.bytes.count {
            let format = ImageFormat(sniffing: body.bytes.prefix(count))
            // A file whose first brand is a general one is a HEIF until the special brand has arrived.
            #expect(format == nil || format == body.format || format == .heif)
        }
    }

    @Test func `looks at slices from their start`() {
        let bytes = [0, 0, 0] + Array("GIF89a".utf8)
        #expect(ImageFormat(sniffing: bytes[3...]) == .gif)
        #expect(ImageFormat(sniffing: Data(bytes)[3...]) == .gif)
        #expect(ImageFormat(sniffing: Data(bytes)) == nil)
    }

    @Test func `random bytes are no image`() {
        var generator = SeededGenerator(seed: 42)
        for _ in 0..<2_000 {
            let count = Int.random(in: 0...64, using: &generator)
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            #expect(ImageFormat(sniffing: bytes) == nil)
        }
    }
}
