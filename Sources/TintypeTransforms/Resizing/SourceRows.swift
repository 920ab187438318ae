import CPixelKernels
import TintypeImage

/// The rows that are resampled: of a picture that is there whole, or as they come.
final class SourceRows {
    /// The most rows that are lent together.
    static let mostRows = Int(cpixels_most_rows)

    let layout: PixelLayout
    /// The picture that is there whole; rows are lent of it as they lie.
    private let pixels: PixelBuffer?
    private let rows: (any RowSource)?
    /// Where rows that come one by one are read to.
    private let stored: AlignedMemory
    /// The next row that comes.
    private var next = 0

    init(_ pixels: PixelBuffer) throws(ImageError) {
        self.layout = pixels.layout
        self.pixels = pixels
        self.rows = nil
        self.stored = try AlignedMemory(byteCount: 0)
    }

    init(_ rows: any RowSource) throws(ImageError) {
        self.layout = rows.layout
        self.pixels = nil
        self.rows = rows
        self.stored = try AlignedMemory(byteCount: rows.layout.planes[0].bytesPerRow * Self.mostRows)
    }

    /// Lends `count` rows, at most ``mostRows``, from `first` on, until the next ones are lent.
    ///
    /// - Throws: What the source throws.
    func lend(_ count: Int, from first: Int) throws -> [UnsafePointer<UInt8>] {
        let bytesPerRow = self.layout.planes[0].bytesPerRow
        let start: UnsafeRawPointer?
        if let pixels {
            // The buffer lives as long as this does.
            start = pixels.withUnsafeBytes { $0.baseAddress }.map { $0 + first * bytesPerRow }
        } else {
            try self.read(count, from: first)
            start = UnsafeRawPointer(self.stored.start)
        }
        guard let start else { return [] }
        return (0..<count).map { (start + $0 * bytesPerRow).assumingMemoryBound(to: UInt8.self) }
    }

    private func read(_ count: Int, from first: Int) throws {
        guard let rows else { return }
        let bytesPerRow = self.layout.planes[0].bytesPerRow
        while self.next < first + count {
            if self.next % 8 == 0 { try Task.checkCancellation() }
            // Rows above the first are read over.
            let place = max(0, self.next - first)
            let row = self.stored.bytes[(place * bytesPerRow)..<((place + 1) * bytesPerRow)]
            try rows.readRow(into: UnsafeMutableRawBufferPointer(rebasing: row))
            self.next += 1
        }
    }
}
