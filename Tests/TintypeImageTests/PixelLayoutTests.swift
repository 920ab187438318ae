// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage

@Suite struct PixelLayoutTests {
    @Test(arguments: [
        (PixelFormat.gray8, 1, 1, 64), (.gray8, 64, 2, 64), (.gray8, 65, 3, 128), (.rgb8, 1, 1, 64), (.rgb8, 21, 1, 64),
        (.rgb8, 22, 1, 128), (.rgb8, 64, 5, 192), (.rgba8, 16, 1, 64), (.rgba8, 17, 9, 128), (.rgba8, 1_000, 1, 4_032),
    ])
    func `starts rows at multiples of64`(format: PixelFormat, width: Int, height: Int, bytesPerRow: Int) throws {
        let layout = try PixelLayout(format: format, width: width, height: height)
        let plane = try #require(layout.planes.first)
        #expect(layout.planes.count == 1)
        #expect(layout.width == width)
        #expect(layout.height == height)
        #expect(plane.offset == 0)
        #expect(plane.width == width)
        #expect(plane.height == height)
        #expect(plane.bytesPerRow == bytesPerRow)
        #expect(plane.usedBytesPerRow == width * format.channelCount)
        #expect(layout.byteCount == bytesPerRow * height)
    }

    @Test(arguments: [
        (0, 1), (1, 0), (0, 0), (-1, 5), (5, -1), (Int.max, 1), (1, Int.max), (Int.max, Int.max), (Int.min, 1),
        (Int(Int32.max) + 1, 1), (Int(Int32.max), Int(Int32.max)),
    ])
    func `refuses sides that cannot be`(width: Int, height: Int) {
        let error = #expect(throws: ImageError.self) {
            try PixelLayout(format: .rgba8, width: width, height: height)
        }
        #expect(error?.code == .invalidSize)
        #expect(error?.message.contains("\(width)x\(height)") == true)
    }

    @Test(arguments: [(PixelFormat.gray8, 1, false), (.rgb8, 3, false), (.rgba8, 4, true)])
    func `formats know their channels`(format: PixelFormat, channels: Int, hasAlpha: Bool) {
        #expect(format.channelCount == channels)
        #expect(format.hasAlpha == hasAlpha)
    }
}
