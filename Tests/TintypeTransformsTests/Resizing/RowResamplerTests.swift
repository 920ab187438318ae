// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@Suite(.computing) struct RowResamplerTests {
    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], LightSpace.allCases)
    func `rows give what the whole image gives`(format: PixelFormat, light: LightSpace) throws {
        let pixels = try PixelBuffer.noise(format, width: 71, height: 58)
        for filter in Resize.Filter.allCases {
            for (width, height) in [(20, 16), (60, 50), (65, 3), (9, 57), (80, 70), (10, 90)] {
                let resize = Resize(width: width, height: height, mode: .stretch, upscales: true, filter: filter)
                let geometry = try ResizeGeometry(resize, width: 71, height: 58)
                let resampling = Resampling(filter: filter, light: light)
                let whole = try Image(pixels: pixels).resized(geometry, resampling).pixels
                let streamed = try Image.resampling(BufferRows(pixels), geometry, resampling).pixels
                #expect(streamed.samples == whole.samples, "\(resize.key)")
            }
        }
    }

    @Test func `rows are read once and not beyond need`() throws {
        let rows = BufferRows(try .smooth(.gray8, width: 100, height: 1_000))
        let geometry = try ResizeGeometry(.fill(width: 10, height: 10), width: 100, height: 1_000)
        _ = try Image.resampling(rows, geometry, Resampling(filter: .lanczos3))
        #expect(rows.readCount > 550)
        #expect(rows.readCount < 600)
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8])
    func `a part that is only cut is copied, and rows below it are not read`(format: PixelFormat) throws {
        // Most alphas are so low that colours would not survive a multiplication by them.
        let pixels = try PixelBuffer.make(format, width: 23, height: 31) { column, row, channel in
            channel == 3 ? UInt8((column + row) % 5) : UInt8((column * 37 + row * 101 + channel * 59) % 256)
        }
        var geometry = TransformGeometry(of: PixelSize(width: 23, height: 31))
        geometry.crop(to: PixelRectangle(x: 4, y: 6, width: 11, height: 9))
        let rows = BufferRows(pixels)
        let part = try Image.resampling(rows, try #require(geometry.resizing), geometry.resampling).pixels
        #expect(rows.readCount == 15)
        for row in 0..<9 {
            for column in 0..<11 {
                for channel in 0..<format.channelCount {
                    #expect(part.sample(column, row, channel) == pixels.sample(column + 4, row + 6, channel))
                }
            }
        }
    }

    @Test func `hidden colours do not bleed`() throws {
        let pixels = try PixelBuffer.make(.rgba8, width: 64, height: 64) { column, row, channel in
            let isRed = (column + row) % 2 == 0
            return [isRed ? 255 : 0, isRed ? 0 : 255, 0, isRed ? 255 : 0][channel]
        }
        let geometry = try ResizeGeometry(.fit(width: 16, height: 16), width: 64, height: 64)
        let small = try Image.resampling(BufferRows(pixels), geometry, Resampling(filter: .lanczos3)).pixels
        for row in 0..<16 {
            for column in 0..<16 { #expect(small.sample(column, row, 1) == 0) }
        }
    }

    @Test func `a source that fails says why`() throws {
        let rows = BufferRows(try .smooth(.gray8, width: 10, height: 10), failsAt: 5)
        let geometry = try ResizeGeometry(.fit(width: 5, height: 5), width: 10, height: 10)
        #expect(throws: BufferRows.Failure.self) { try Image.resampling(rows, geometry, Resampling(filter: .lanczos3)) }
    }
}

/// A source that reads the rows of a buffer one at a time.
final class BufferRows: RowSource {
    struct Failure: Error {}

    private let pixels: PixelBuffer
    private let failingRow: Int?
    private(set) var readCount = 0

    init(_ pixels: PixelBuffer, failsAt failingRow: Int? = nil) {
        self.pixels = pixels
        self.failingRow = failingRow
    }

    var layout: PixelLayout { self.pixels.layout }

    func readRow(into row: UnsafeMutableRawBufferPointer) throws {
        if self.readCount == self.failingRow { throw Failure() }
        row.copyBytes(from: self.pixels.row(self.readCount))
        self.readCount += 1
    }
}
