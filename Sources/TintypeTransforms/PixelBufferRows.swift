import TintypeImage

/// The rows of a picture that is there whole.
final class PixelBufferRows: RowSource {
    private let pixels: PixelBuffer
    private var row = 0

    init(_ pixels: PixelBuffer) {
        self.pixels = pixels
    }

    var layout: PixelLayout { self.pixels.layout }

    func readRow(into row: UnsafeMutableRawBufferPointer) {
        let plane = self.layout.planes[0]
        precondition(self.row < plane.height, "There are no more rows.")
        self.pixels.withUnsafeBytes { bytes in
            let start = self.row * plane.bytesPerRow
            row.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[start..<start + plane.usedBytesPerRow]))
        }
        self.row += 1
    }
}
