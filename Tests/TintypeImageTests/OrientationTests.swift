// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport

@Suite struct OrientationTests {
    /// Sizes around the tile size of a turn.
    static let sizes = [(1, 1), (1, 40), (6, 7), (31, 31), (32, 32), (33, 33), (33, 31), (64, 2), (70, 45)]

    @Test(arguments: Orientation.allCases, [PixelFormat.gray8, .rgb8, .rgba8])
    func `turns like the slow reference`(orientation: Orientation, format: PixelFormat) throws {
        for (width, height) in Self.sizes {
            let pixels = try PixelBuffer.noise(format, width: width, height: height)
            let upright = try Image(pixels: pixels, orientation: orientation).upright()
            let expected = PixelGrid(pixels).turned(orientation)
            #expect(upright.width == (orientation.swapsSides ? height : width))
            #expect(upright.height == (orientation.swapsSides ? width : height))
            #expect(PixelGrid(upright.pixels) == expected, "\(width)x\(height)")
        }
    }

    @Test(arguments: Orientation.allCases) func `is applied once`(orientation: Orientation) throws {
        let image = Image(
            pixels: try PixelBuffer.noise(.rgb8, width: 5, height: 3),
            orientation: orientation,
            sourceFormat: .jpeg
        )
        let once = try image.upright()
        let twice = try once.upright()
        #expect(once.orientation == .up)
        #expect(once.sourceFormat == .jpeg)
        #expect(twice.pixels === once.pixels)
    }

    @Test func `an upright image is returned as it is`() throws {
        let image = Image(pixels: try PixelBuffer.noise(.gray8, width: 2, height: 2))
        #expect(try image.upright().pixels === image.pixels)
    }

    @Test(arguments: Orientation.allCases, Orientation.allCases)
    func `two turns as one move the pixels as both do`(first: Orientation, second: Orientation) throws {
        let pixels = try PixelBuffer.noise(.gray8, width: 5, height: 3)
        let joined = try Image(pixels: pixels, orientation: first.followed(by: second)).upright()
        #expect(PixelGrid(joined.pixels) == PixelGrid(pixels).turned(first).turned(second))
    }

    @Test(arguments: [
        (Orientation.up, 4, 3), (.upMirrored, 4, 3), (.down, 4, 3), (.downMirrored, 4, 3), (.leftMirrored, 3, 4),
        (.right, 3, 4), (.rightMirrored, 3, 4), (.left, 3, 4),
    ])
    func `exchanges the sides from five on`(orientation: Orientation, width: Int, height: Int) {
        let size = orientation.uprightSize(width: 4, height: 3)
        #expect(size == (width, height))
        #expect(orientation.swapsSides == (width == 3))
    }

    @Test(arguments: [0, 9, 255] as [UInt8]) func `other values are no orientation`(value: UInt8) {
        #expect(Orientation(rawValue: value) == nil)
    }
}

/// Pixels as rows of samples, with slow and literal turns.
private struct PixelGrid: Equatable {
    private var rows: [[[UInt8]]]

    init(_ pixels: PixelBuffer) {
        let channels = pixels.format.channelCount
        self.rows = (0..<pixels.height).map { row in
            let samples = pixels.row(row)
            return (0..<pixels.width).map { Array(samples[$0 * channels..<($0 + 1) * channels]) }
        }
    }

    private init(rows: [[[UInt8]]]) {
        self.rows = rows
    }

    /// Returns a turn of the EXIF specification, composed of mirrors and quarter turns.
    func turned(_ orientation: Orientation) -> PixelGrid {
        switch orientation {
        case .up: self
        case .upMirrored: self.mirrored
        case .down: self.turnedClockwise.turnedClockwise
        case .downMirrored: self.mirrored.turnedClockwise.turnedClockwise
        case .leftMirrored: self.turnedClockwise.mirrored
        case .right: self.turnedClockwise
        case .rightMirrored: self.mirrored.turnedClockwise
        case .left: self.turnedClockwise.turnedClockwise.turnedClockwise
        }
    }

    private var mirrored: PixelGrid {
        PixelGrid(rows: self.rows.map { $0.reversed() })
    }

    private var turnedClockwise: PixelGrid {
        let columns = self.rows.first?.indices ?? 0..<0
        return PixelGrid(rows: columns.map { column in self.rows.reversed().map { $0[column] } })
    }
}
