// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto
public import TintypeImage

/// Measures of our pixels that the corpus manifest has as well.
///
/// The code uses pointers and plain loops, because tests are built without optimisation and the images are large.
public enum PixelMeasure {
    /// Returns the SHA-256 of the pixels as straight RGBA rows without padding, in hexadecimal digits.
    ///
    /// If `clearsHidden` is true, the colours of transparent pixels count as 0.
    public static func digest(_ pixels: PixelBuffer, clearsHidden: Bool = false) -> String {
        let count = pixels.width * pixels.height * 4
        let rgba = UnsafeMutablePointer<UInt8>.allocate(capacity: count)
        defer { rgba.deallocate() }
        pixels.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
            for row in 0..<pixels.height {
                self.expand(
                    base + row * pixels.layout.planes[0].bytesPerRow,
                    channels: pixels.format.channelCount,
                    count: pixels.width,
                    to: rgba + row * pixels.width * 4
                )
            }
        }
        if clearsHidden {
            for pixel in stride(from: rgba, to: rgba + count, by: 4) where pixel[3] == 0 {
                pixel.update(repeating: 0, count: 3)
            }
        }
        var digest = [UInt8](repeating: 0, count: 32)
        _ = SHA256(rgba, count, &digest)
        return digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    private static func expand(
        _ row: UnsafePointer<UInt8>,
        channels: Int,
        count: Int,
        to target: UnsafeMutablePointer<UInt8>
    ) {
        guard channels < 4 else { return target.update(from: row, count: count * 4) }
        let (green, blue) = channels == 1 ? (0, 0) : (1, 2)
        var source = row
        var target = target
        let end = target + count * 4
        while target < end {
            target[0] = source[0]
            target[1] = source[green]
            target[2] = source[blue]
            target[3] = 255
            source += channels
            target += 4
        }
    }

    /// Returns the means of 16 by 16 cells, row by row, and of the whole, for red, green and blue times alpha.
    public static func means(_ pixels: PixelBuffer) -> (cells: [Double], whole: [Double]) {
        let columns = (0..<16).map { Span(cell: $0, of: pixels.width) }
        let rows = (0..<16).map { Span(cell: $0, of: pixels.height) }
        var cells: [Double] = []
        for down in rows {
            var sums = [Double](repeating: 0, count: 16 * 3)
            var weights = 0.0
            for row in down.first...down.last {
                let weight = down.share(row)
                weights += weight
                for (index, sum) in self.sums(of: pixels, row: row, columns).enumerated() {
                    sums[index] += sum * weight
                }
            }
            cells += sums.enumerated().map { $1 / weights / columns[$0 / 3].length }
        }
        let whole = (0..<3).map { channel in
            stride(from: channel, to: cells.count, by: 3).reduce(0) { $0 + cells[$1] } / 256
        }
        return (cells, whole)
    }

    /// Returns the sums of red, green and blue times alpha over the cells of one row.
    private static func sums(of pixels: PixelBuffer, row: Int, _ columns: [Span]) -> [Double] {
        let rgba = UnsafeMutablePointer<UInt8>.allocate(capacity: pixels.width * 4)
        defer { rgba.deallocate() }
        pixels.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
            let start = base + row * pixels.layout.planes[0].bytesPerRow
            self.expand(start, channels: pixels.format.channelCount, count: pixels.width, to: rgba)
        }
        return columns.flatMap { column in
            var sums = [0.0, 0.0, 0.0]
            let inner = self.sum(rgba, from: column.first + 1, to: column.last)
            for channel in 0..<3 {
                sums[channel] = Double(inner[channel]) / 255
                for edge in Set([column.first, column.last]) {
                    let alpha = Double(rgba[edge * 4 + 3]) / 255
                    sums[channel] += Double(rgba[edge * 4 + channel]) * alpha * column.share(edge)
                }
            }
            return sums
        }
    }

    private static func sum(_ rgba: UnsafePointer<UInt8>, from start: Int, to end: Int) -> [Int] {
        var (red, green, blue) = (0, 0, 0)
        var pixel = rgba + start * 4
        var left = end - start
        while left > 0 {
            let alpha = Int(pixel[3])
            red &+= Int(pixel[0]) &* alpha
            green &+= Int(pixel[1]) &* alpha
            blue &+= Int(pixel[2]) &* alpha
            pixel += 4
            left &-= 1
        }
        return [red, green, blue]
    }
}

/// The pixels of one side that lie in one of 16 equal cells.
private struct Span {
    private let start: Double
    private let end: Double
    let first: Int
    let last: Int

    init(cell: Int, of size: Int) {
        self.start = Double(cell * size) / 16
        self.end = Double((cell + 1) * size) / 16
        self.first = cell * size / 16
        self.last = ((cell + 1) * size - 1) / 16
    }

    var length: Double { self.end - self.start }

    /// Returns the share of a pixel that lies in the cell.
    func share(_ pixel: Int) -> Double {
        min(self.end, Double(pixel + 1)) - max(self.start, Double(pixel))
    }
}
