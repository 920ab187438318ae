import TintypeImage

/// A picture as a GIF can hold it: each pixel is opaque, or zero where it is transparent.
struct GIFPicture {
    /// The least alpha of a pixel that is taken as opaque.
    private static let opaqueAlpha: UInt8 = 128

    let width: Int
    let height: Int
    /// Red in the lowest byte, row by row without padding.
    var pixels: [UInt32]

    /// A transparent picture.
    init(width: Int, height: Int) {
        self.width = width
        self.height = height
        self.pixels = Array(repeating: 0, count: width * height)
    }

    /// The pixels of an upright picture.
    ///
    /// - Throws: `CancellationError`.
    init(_ buffer: PixelBuffer) throws {
        try MemoryRoom.require(buffer.width * buffer.height * 4)
        self.init(width: buffer.width, height: buffer.height)
        let bytesPerRow = buffer.layout.planes[0].bytesPerRow
        let channels = buffer.format.channelCount
        for row in 0..<self.height {
            if row % 64 == 0 { try Task.checkCancellation() }
            buffer.withUnsafeBytes { bytes in
                for column in 0..<self.width {
                    let start = row * bytesPerRow + column * channels
                    let green = channels == 1 ? start : start + 1
                    let blue = channels == 1 ? start : start + 2
                    guard channels < 4 || bytes[start + 3] >= Self.opaqueAlpha else { continue }
                    self.pixels[row * self.width + column] =
                        0xFF00_0000 | UInt32(bytes[blue]) << 16 | UInt32(bytes[green]) << 8 | UInt32(bytes[start])
                }
            }
        }
    }

    /// The pixels of a part.
    func pixels(in area: GIFArea) -> [UInt32] {
        var part: [UInt32] = []
        part.reserveCapacity(area.width * area.height)
        for row in area.top..<area.bottom {
            part += self.pixels[row * self.width + area.left..<row * self.width + area.right]
        }
        return part
    }

    /// The smallest area that holds all pixels that `matches` is true for; it gets those of both pictures.
    func area(with other: GIFPicture, where matches: (UInt32, UInt32) -> Bool) -> GIFArea? {
        var area: GIFArea?
        for row in 0..<self.height {
            let line = row * self.width..<(row + 1) * self.width
            guard let first = line.first(where: { matches(self.pixels[$0], other.pixels[$0]) }) else { continue }
            let last = line.last { matches(self.pixels[$0], other.pixels[$0]) } ?? first
            let found = GIFArea(
                left: first - line.lowerBound,
                top: row,
                right: last - line.lowerBound + 1,
                bottom: row + 1
            )
            area = area?.union(found) ?? found
        }
        return area
    }

    /// Makes an area transparent.
    mutating func clear(_ area: GIFArea) {
        for row in area.top..<area.bottom {
            for column in area.left..<area.right { self.pixels[row * self.width + column] = 0 }
        }
    }
}

/// A rectangle of pixels; it holds its left column and top row, and not its right column and bottom row.
struct GIFArea {
    var left: Int
    var top: Int
    var right: Int
    var bottom: Int

    var width: Int { self.right - self.left }
    var height: Int { self.bottom - self.top }

    /// The smallest area that holds both.
    func union(_ other: GIFArea) -> GIFArea {
        GIFArea(
            left: min(self.left, other.left),
            top: min(self.top, other.top),
            right: max(self.right, other.right),
            bottom: max(self.bottom, other.bottom)
        )
    }
}
