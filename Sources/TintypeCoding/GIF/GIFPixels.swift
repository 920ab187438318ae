// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
import TintypeImage

/// The pixels that a GIF shows at one time, row by row: each pixel is opaque, or zero if it is transparent.
struct GIFPixels {
    /// The least alpha of a pixel that becomes opaque.
    private static let opaqueAlpha: UInt8 = 128

    private let image: PixelBuffer
    /// The area that is transparent, whatever the image has there.
    private let cleared: PixelArea?

    /// Creates the pixels of an upright image.
    init(_ image: PixelBuffer, cleared: PixelArea? = nil) {
        self.image = image
        self.cleared = cleared
    }

    /// The area of the whole image.
    var area: PixelArea { PixelArea(rows: 0..<self.image.height, columns: 0..<self.image.width) }

    /// Reads a part of a row to the start of `pixels`.
    func read(row: Int, columns: Range<Int>, into pixels: inout [UInt32]) {
        self.image.read(row: row, columns: columns, into: &pixels)
        if self.image.format.hasAlpha { cpixels_cut_alpha(&pixels, columns.count, Self.opaqueAlpha) }
        guard let cleared, cleared.rows.contains(row) else { return }
        for column in cleared.columns.clamped(to: columns) { pixels[column - columns.lowerBound] = 0 }
    }

    /// Returns the smallest area that contains all pixels that differ from `before`.
    ///
    /// - Throws: `CancellationError`.
    func area(changedFrom before: GIFPixels, work: DecodeWork) throws -> PixelArea? {
        try self.area(with: before, work: work, find: cpixels_find_changes)
    }

    /// Returns the smallest area that contains all pixels that are opaque here and transparent in `next`.
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

/// The pixels that a frame draws: an area of the canvas, in which unchanged pixels may be left out.
struct GIFDrawing {
    let pixels: GIFPixels
    let area: PixelArea
    /// The pixels shown before, of which equal ones are left out; `nil` draws all pixels.
    var before: GIFPixels?

    /// Calls `body` with each row until it returns `false`; pixels that are not drawn are zero.
    ///
    /// - Throws: `CancellationError`, any error of `body`.
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
    fileprivate var emptyRow: [UInt32] { Array(repeating: 0, count: self.columns.count) }
}
