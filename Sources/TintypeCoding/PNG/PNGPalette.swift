import TintypeImage

/// The colours of pictures, as long as they are few.
struct PNGPalette {
    static let maximumCount = 256
    /// Twice as many places and more, so that a search ends soon.
    private static let placeCount = 1_024

    /// Red, green, blue and alpha, the red byte lowest, in the order of their indices.
    private(set) var colors: [UInt32] = []
    /// The indices by the hash of their colours; -1 is a free place.
    private var places = [Int16](repeating: -1, count: Self.placeCount)

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
                indices[column - columns.lowerBound] = UInt8(truncatingIfNeeded: lastIndex ?? 0)
            }
        }
    }

    private mutating func insert(row: Int, of pixels: PixelBuffer) -> Bool {
        var isSmall = true
        pixels.withPackedRow(row) { color in
            var last: UInt32?
            for column in 0..<pixels.width {
                let color = color(column)
                guard color != last else { continue }
                last = color
                guard self.insert(color) else {
                    isSmall = false
                    return
                }
            }
        }
        return isSmall
    }

    private mutating func insert(_ color: UInt32) -> Bool {
        var place = Self.firstPlace(of: color)
        while self.places[place] >= 0 {
            if self.colors[Int(self.places[place])] == color { return true }
            place = (place + 1) % Self.placeCount
        }
        guard self.colors.count < Self.maximumCount else { return false }
        self.places[place] = Int16(self.colors.count)
        self.colors.append(color)
        return true
    }

    private func index(of color: UInt32) -> Int? {
        var place = Self.firstPlace(of: color)
        while self.places[place] >= 0 {
            let index = Int(self.places[place])
            if self.colors[index] == color { return index }
            place = (place + 1) % Self.placeCount
        }
        return nil
    }

    private static func firstPlace(of color: UInt32) -> Int {
        // Fibonacci hashing: the high bits of the product are well mixed.
        Int((color &* 0x9E37_79B1) >> 22)
    }
}

extension PixelBuffer {
    /// Lends a row as colours: red, green, blue and alpha, the red byte lowest.
    fileprivate func withPackedRow(_ row: Int, _ body: ((Int) -> UInt32) -> Void) {
        let channels = self.format.channelCount
        let offset = self.layout.planes[0].offset + row * self.layout.planes[0].bytesPerRow
        self.withUnsafeBytes { bytes in
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
