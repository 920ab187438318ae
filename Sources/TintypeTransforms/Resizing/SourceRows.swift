// SPDX-License-Identifier: Apache-2.0

import TintypeImage

/// The source rows of a resampling, from a whole image or as they are decoded.
final class SourceRows {
    let layout: PixelLayout
    /// The number of samples skipped at the start of each row.
    var leftOut = 0
    /// The whole image, whose rows are lent in place; `nil` for rows that come one by one.
    private let pixels: PixelBuffer?
    private let rows: (any RowSource)?
    /// The latest rows, in a ring.
    private var ring: [StoredRow] = []
    /// The index of the next row to read.
    private var next = 0

    init(_ pixels: PixelBuffer) {
        self.layout = pixels.layout
        self.pixels = pixels
        self.rows = nil
    }

    init(_ rows: any RowSource) {
        self.layout = rows.layout
        self.pixels = nil
        self.rows = rows
    }

    /// Makes room for `count` rows that are lent together; does nothing for a whole image.
    func reserve(_ count: Int) throws(ImageError) {
        guard self.pixels == nil else { return }
        let byteCount = self.layout.planes[0].bytesPerRow
        while self.ring.count < count { self.ring.append(try StoredRow(byteCount: byteCount)) }
    }

    /// Lends `count` rows from `first` on until the next call; `count` must not exceed the reserved rows.
    ///
    /// Rows can be lent again while they are among the latest reserved rows.
    ///
    /// - Throws: The errors of the source.
    func lend(_ count: Int, from first: Int) throws -> [UnsafePointer<UInt8>] {
        if let pixels {
            // The buffer lives as long as this object.
            guard let base = pixels.withUnsafeBytes({ $0.baseAddress }) else { return [] }
            let bytesPerRow = self.layout.planes[0].bytesPerRow
            return (first..<first + count).map {
                (base + $0 * bytesPerRow + self.leftOut).assumingMemoryBound(to: UInt8.self)
            }
        }
        while self.next < first + count {
            if self.next % 8 == 0 { try Task.checkCancellation() }
            try self.rows?.readRow(into: self.ring[self.next % self.ring.count].bytes)
            self.next += 1
        }
        return (first..<first + count).map { UnsafePointer(self.ring[$0 % self.ring.count].start + self.leftOut) }
    }

    /// Returns a copy of a part of the image; does not read the rows below it.
    ///
    /// - Throws: The errors of the source, `TransformError`, `ImageError`, `CancellationError`.
    func cut(to part: PixelRectangle) throws -> PixelBuffer {
        let layout = try PixelLayout.result(self.layout.format, width: part.width, height: part.height)
        let plane = layout.planes[0]
        let left = part.x * layout.format.channelCount
        try self.reserve(1)
        return try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                for row in 0..<part.height {
                    for stored in try self.lend(1, from: part.y + row) {
                        target.baseAddress?.advanced(by: row * plane.bytesPerRow)
                            .copyMemory(from: stored + left, byteCount: plane.usedBytesPerRow)
                    }
                }
            }
        )
    }
}

/// A stored row.
private final class StoredRow {
    private let memory: AlignedMemory

    init(byteCount: Int) throws(ImageError) {
        self.memory = try AlignedMemory(byteCount: byteCount)
    }

    var bytes: UnsafeMutableRawBufferPointer { self.memory.bytes }
    var start: UnsafeMutablePointer<UInt8> { self.memory.start.assumingMemoryBound(to: UInt8.self) }
}
