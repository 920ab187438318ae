import TintypeImage

/// The distinct colours of pictures, as long as they are few.
///
/// A colour has red in its lowest byte, then green, blue and alpha.
package struct ColorSet {
    static let maximumCount = 256
    /// Twice as many places and more, so that a search ends soon.
    private static let placeCount = 1_024

    /// The colours in the order in which they were met.
    package private(set) var colors: [UInt32] = []
    /// The indices by the hash of their colours; -1 is a free place.
    private var places = [Int16](repeating: -1, count: placeCount)

    /// Begins without colours.
    package init() {}

    /// Adds a colour; `false` where that would be one too many.
    mutating func insert(_ color: UInt32) -> Bool {
        let place = self.place(of: color)
        if self.places[place] >= 0 { return true }
        guard self.colors.count < Self.maximumCount else { return false }
        self.places[place] = Int16(self.colors.count)
        self.colors.append(color)
        return true
    }

    /// The index of a colour in ``colors``, or `nil` for one that is not there.
    package func index(of color: UInt32) -> UInt8? {
        let index = self.places[self.place(of: color)]
        return index < 0 ? nil : UInt8(index)
    }

    /// The place that has a colour, or the free one where it belongs.
    private func place(of color: UInt32) -> Int {
        // Fibonacci hashing: the high bits of the product are well mixed.
        var place = Int((color &* 0x9E37_79B1) >> 22)
        while self.places[place] >= 0, self.colors[Int(self.places[place])] != color {
            place = (place + 1) % Self.placeCount
        }
        return place
    }
}

// MARK: - Colours of pictures

extension ColorSet {
    /// Adds the colours of pixels, of which those that are zero are transparent and left out; `false` when there are
    /// too many.
    package mutating func insert(opaque pixels: [UInt32]) -> Bool {
        var last: UInt32 = 0
        for pixel in pixels where pixel != last {
            guard pixel == 0 || self.insert(pixel) else { return false }
            last = pixel
        }
        return true
    }

    /// Adds the colours of a picture; false when they are too many.
    mutating func insert(_ pixels: PixelBuffer) throws -> Bool {
        for row in 0..<pixels.height {
            if row % 64 == 0 { try Task.checkCancellation() }
            guard self.insert(row: row, of: pixels) else { return false }
        }
        return true
    }

    /// Writes the indices of a row of pixels, one byte each; all colours are known.
    func write(row: Int, of pixels: PixelBuffer, columns: Range<Int>, to indices: UnsafeMutablePointer<UInt8>) {
        pixels.withPackedRow(row) { row in
            var last = UInt32(0)
            var lastIndex = self.index(of: 0)
            for column in columns {
                let color = row(column)
                if color != last {
                    last = color
                    lastIndex = self.index(of: color)
                }
                indices[column - columns.lowerBound] = lastIndex ?? 0
            }
        }
    }

    private mutating func insert(row: Int, of pixels: PixelBuffer) -> Bool {
        pixels.withPackedRow(row) { color in
            var last: UInt32?
            for column in 0..<pixels.width {
                let color = color(column)
                guard color != last else { continue }
                last = color
                guard self.insert(color) else { return false }
            }
            return true
        }
    }
}

extension [UInt32] {
    /// The red, green and blue of each colour, as palettes are stored.
    var paletteBytes: [UInt8] {
        self.flatMap { color in (0..<3).map { UInt8(truncatingIfNeeded: color >> ($0 * 8)) } }
    }
}

extension PixelBuffer {
    /// Lends a row as colours: red, green, blue and alpha, the red byte lowest.
    fileprivate func withPackedRow<Result>(_ row: Int, _ body: ((Int) -> UInt32) -> Result) -> Result {
        let channels = self.format.channelCount
        let offset = self.layout.planes[0].offset + row * self.layout.planes[0].bytesPerRow
        return self.withUnsafeBytes { bytes in
            switch channels {
            case 4: body { bytes.loadUnaligned(fromByteOffset: offset + $0 * 4, as: UInt32.self) }
            case 3:
                body { column in
                    let first = offset + column * 3
                    return 0xFF00_0000 | UInt32(bytes[first + 2]) << 16 | UInt32(bytes[first + 1]) << 8
                        | UInt32(bytes[first])
                }
            default: body { 0xFF00_0000 | 0x01_0101 * UInt32(bytes[offset + $0]) }
            }
        }
    }
}
