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
    func pixels(in area: PixelArea) -> [UInt32] {
        var part: [UInt32] = []
        part.reserveCapacity(area.columns.count * area.rows.count)
        for row in area.rows { part += self.pixels[self.line(row, area.columns)] }
        return part
    }

    /// The smallest area that holds all pixels that `matches` is true for; it gets those of both pictures.
    func area(with other: GIFPicture, where matches: (UInt32, UInt32) -> Bool) -> PixelArea? {
        var area: PixelArea?
        for row in 0..<self.height {
            let line = self.line(row, 0..<self.width)
            guard let first = line.first(where: { matches(self.pixels[$0], other.pixels[$0]) }) else { continue }
            let last = line.last { matches(self.pixels[$0], other.pixels[$0]) } ?? first
            let found = PixelArea(
                rows: row..<row + 1,
                columns: first - line.lowerBound..<last - line.lowerBound + 1
            )
            area = area?.union(found) ?? found
        }
        return area
    }

    /// Makes an area transparent.
    mutating func clear(_ area: PixelArea) {
        for row in area.rows {
            for place in self.line(row, area.columns) { self.pixels[place] = 0 }
        }
    }

    private func line(_ row: Int, _ columns: Range<Int>) -> Range<Int> {
        row * self.width + columns.lowerBound..<row * self.width + columns.upperBound
    }
}
