// SPDX-License-Identifier: Apache-2.0

import TintypeImage

/// A rectangle of pixels.
struct PixelArea {
    let rows: Range<Int>
    let columns: Range<Int>

    var isEmpty: Bool { self.rows.isEmpty || self.columns.isEmpty }

    /// Returns the smallest area that contains both.
    func union(_ other: PixelArea) -> PixelArea {
        func joined(_ one: Range<Int>, _ other: Range<Int>) -> Range<Int> {
            min(one.lowerBound, other.lowerBound)..<max(one.upperBound, other.upperBound)
        }
        return PixelArea(rows: joined(self.rows, other.rows), columns: joined(self.columns, other.columns))
    }
}

/// The memory of a canvas while frames are drawn on it: `rgba8` with straight alpha, initially undefined.
///
/// It counts all work in strips, so that the work ends soon after the budget is used up or the task is cancelled.
struct FrameCanvas {
    /// The number of pixels that can be copied or cleared for the work of computing one.
    private static let movedPixelsPerUnit = 4

    let layout: PixelLayout
    let base: UnsafeMutableRawPointer
    private let work: DecodeWork

    /// Wraps memory for pixels; `nil` if there is no memory, or the layout is not `rgba8`.
    init?(_ bytes: UnsafeMutableRawBufferPointer, layout: PixelLayout, work: DecodeWork) {
        guard let base = bytes.baseAddress, layout.format == .rgba8 else { return nil }
        self.base = base
        self.layout = layout
        self.work = work
    }

    /// The whole canvas.
    var area: PixelArea { PixelArea(rows: 0..<self.layout.height, columns: 0..<self.layout.width) }

    /// Returns the part of the canvas that a frame covers.
    func area(of frame: AnimationFrame) -> PixelArea {
        func clamped(_ start: Int, _ length: Int, _ limit: Int) -> Range<Int> {
            let lower = min(max(0, start), limit)
            return lower..<max(lower, min(start.saturatingAdded(to: length), limit))
        }
        return PixelArea(
            rows: clamped(frame.top, frame.height, self.layout.height),
            columns: clamped(frame.left, frame.width, self.layout.width)
        )
    }

    /// Returns the address of the first byte of a row.
    func row(_ row: Int) -> UnsafeMutableRawPointer { self.base + row * self.layout.planes[0].bytesPerRow }

    /// Makes an area transparent.
    func clear(_ area: PixelArea) throws {
        try self.move(area) { row in
            let start = self.row(row) + area.columns.lowerBound * 4
            start.initializeMemory(as: UInt8.self, repeating: 0, count: area.columns.count * 4)
        }
    }

    /// Copies an image of the canvas's size to the canvas.
    func copy(_ pixels: PixelBuffer) throws { try self.restore(pixels, in: self.area) }

    /// Returns a copy of the pixels in an area; `nil` if the area is empty.
    func pixels(in area: PixelArea) throws -> PixelBuffer? {
        guard !area.isEmpty else { return nil }
        let layout = try PixelLayout(format: .rgba8, width: area.columns.count, height: area.rows.count)
        return try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                guard let target = target.baseAddress else { return }
                try self.move(area) { row in
                    let to = target + (row - area.rows.lowerBound) * layout.planes[0].bytesPerRow
                    let from = self.row(row) + area.columns.lowerBound * 4
                    to.copyMemory(from: from, byteCount: area.columns.count * 4)
                }
            }
        )
    }

    /// Writes back the pixels that were copied from an area.
    func restore(_ pixels: PixelBuffer, in area: PixelArea) throws {
        let bytesPerRow = pixels.layout.planes[0].bytesPerRow
        try pixels.withUnsafeBytes { source in
            guard let source = source.baseAddress else { return }
            try self.move(area) { row in
                let from = source + (row - area.rows.lowerBound) * bytesPerRow
                let to = self.row(row) + area.columns.lowerBound * 4
                to.copyMemory(from: from, byteCount: area.columns.count * 4)
            }
        }
    }

    /// Draws the pixels of a frame at its position.
    func draw(_ pixels: PixelBuffer, _ frame: AnimationFrame) throws {
        let area = self.area(of: frame)
        guard !area.isEmpty else { return }
        let bytesPerRow = pixels.layout.planes[0].bytesPerRow
        try pixels.withUnsafeBytes { source in
            guard let source = source.baseAddress else { return }
            try self.inStrips(area, pixelsPerUnit: 1) { row in
                let from = source + (row - frame.top) * bytesPerRow + (area.columns.lowerBound - frame.left) * 4
                let to = self.row(row) + area.columns.lowerBound * 4
                if frame.blend == .source {
                    to.copyMemory(from: from, byteCount: area.columns.count * 4)
                } else {
                    Self.blend(from, over: to, count: area.columns.count)
                }
            }
        }
    }

    private static func blend(_ source: UnsafeRawPointer, over target: UnsafeMutableRawPointer, count: Int) {
        let source = source.assumingMemoryBound(to: UInt32.self)
        let target = target.assumingMemoryBound(to: UInt32.self)
        for column in 0..<count {
            let pixel = source[column]
            let alpha = pixel >> 24
            if alpha == 255 {
                target[column] = pixel
            } else if alpha > 0 {
                target[column] = self.over(pixel, target[column])
            }
        }
    }

    /// Returns one pixel blended over another, both with straight alpha (Porter and Duff, 1984).
    private static func over(_ top: UInt32, _ bottom: UInt32) -> UInt32 {
        let topAlpha = top >> 24
        // The bottom pixel's share of the result, in units of 255 * 255.
        let bottomShare = (bottom >> 24) * (255 - topAlpha)
        let topShare = topAlpha * 255
        let total = topShare + bottomShare
        var result = ((total + 127) / 255) << 24
        for shift in stride(from: UInt32(0), to: 24, by: 8) {
            let mixed = ((top >> shift) & 255) * topShare + ((bottom >> shift) & 255) * bottomShare
            result |= ((mixed + total / 2) / total) << shift
        }
        return result
    }

    /// Calls `body` for each row of an area whose pixels are only copied or cleared.
    private func move(_ area: PixelArea, _ body: (Int) -> Void) throws {
        try self.inStrips(area, pixelsPerUnit: Self.movedPixelsPerUnit, body)
    }

    private func inStrips(_ area: PixelArea, pixelsPerUnit: Int, _ body: (Int) -> Void) throws {
        guard !area.isEmpty else { return }
        let strip = DecodeWork.rowsAtOnce(ofWidth: area.columns.count)
        for start in stride(from: area.rows.lowerBound, to: area.rows.upperBound, by: strip) {
            let end = min(start + strip, area.rows.upperBound)
            try self.work.count((end - start) * area.columns.count / pixelsPerUnit)
            for row in start..<end { body(row) }
        }
    }
}
