import CPixelKernels
import TintypeImage

/// What a GIF shows at a time, row by row: each pixel is opaque, or zero where it is transparent.
struct GIFPixels {
    /// The least alpha of a pixel that is taken as opaque.
    private static let opaqueAlpha: UInt8 = 128

    private let image: PixelBuffer
    /// The part that is transparent, whatever the image has there.
    private let cleared: PixelArea?

    /// The pixels of an upright image.
    init(_ image: PixelBuffer, cleared: PixelArea? = nil) {
        self.image = image
        self.cleared = cleared
    }

    /// All of the image.
    var area: PixelArea { PixelArea(rows: 0..<self.image.height, columns: 0..<self.image.width) }

    /// Reads a part of a row to the start of `pixels`.
    func read(row: Int, columns: Range<Int>, into pixels: inout [UInt32]) {
        self.image.read(row: row, columns: columns, into: &pixels)
        if self.image.format.hasAlpha { cpixels_cut_alpha(&pixels, columns.count, Self.opaqueAlpha) }
        guard let cleared, cleared.rows.contains(row) else { return }
        for column in cleared.columns.clamped(to: columns) { pixels[column - columns.lowerBound] = 0 }
    }

    /// The smallest area that holds all pixels that changed from `before` to this.
    ///
    /// - Throws: `CancellationError`.
    func area(changedFrom before: GIFPixels, work: DecodeWork) throws -> PixelArea? {
        try self.area(with: before, work: work, find: cpixels_find_changes)
    }

    /// The smallest area that holds all pixels that are opaque here and transparent in `next`.
    ///
    /// - Throws: `CancellationError`.
    func area(clearedFor next: GIFPixels, work: DecodeWork) throws -> PixelArea? {
        guard next.image.format.hasAlpha else { return nil }
        return try self.area(with: next, work: work, find: cpixels_find_cleared)
    }

    private func area(
        with other: GIFPixels,
        work: DecodeWork,
        find: (UnsafePointer<UInt32>, UnsafePointer<UInt32>, Int) -> cpixels_columns
    ) throws -> PixelArea? {
        let whole = self.area
        var (pixels, others) = (whole.emptyRow, whole.emptyRow)
        var area: PixelArea?
        for row in whole.rows {
            try work.count(whole.columns.count)
            self.read(row: row, columns: whole.columns, into: &pixels)
            other.read(row: row, columns: whole.columns, into: &others)
            let columns = find(pixels, others, pixels.count)
            guard columns.end > 0 else { continue }
            let found = PixelArea(rows: row..<row + 1, columns: columns.start..<columns.end)
            area = area?.union(found) ?? found
        }
        return area
    }
}

/// The pixels that a frame draws: a part of what is shown, in which pixels may be left out that stay.
struct GIFDrawing {
    let pixels: GIFPixels
    let area: PixelArea
    /// What is shown before; pixels that are equal are left out.
    var before: GIFPixels?

    /// Calls `body` with each row, in which pixels are zero that are not drawn, until it returns `false`.
    ///
    /// - Throws: `CancellationError`, and what `body` throws.
    func forEachRow(_ work: DecodeWork, unitsPerPixel: Int, _ body: ([UInt32]) throws -> Bool) throws {
        let columns = self.area.columns
        var pixels = self.area.emptyRow
        var others = self.before == nil ? [] : self.area.emptyRow
        for row in self.area.rows {
            try work.count(columns.count * unitsPerPixel)
            self.pixels.read(row: row, columns: columns, into: &pixels)
            if let before {
                before.read(row: row, columns: columns, into: &others)
                cpixels_keep_changes(&pixels, others, pixels.count)
            }
            guard try body(pixels) else { return }
        }
    }
}

extension PixelArea {
    /// The number of pixels.
    var pixelCount: Int { self.rows.count * self.columns.count }

    fileprivate var emptyRow: [UInt32] { Array(repeating: 0, count: self.columns.count) }
}
