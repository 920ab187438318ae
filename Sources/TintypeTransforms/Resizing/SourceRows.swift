import CPixelKernels
import TintypeImage

/// The rows that are resampled: of an image that is there whole, or as they come.
final class SourceRows {
    let layout: PixelLayout
    /// The samples at the start of each row that are not lent.
    var leftOut = 0
    /// The image that is there whole; its rows are lent as they lie.
    private let pixels: PixelBuffer?
    private let rows: (any RowSource)?
    /// The last rows that came, each in its place of a ring.
    private var ring: [StoredRow] = []
    /// The next row that comes.
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

    /// Makes room for `count` rows that are lent together.
    func reserve(_ count: Int) throws(ImageError) {
        guard self.pixels == nil else { return }
        let byteCount = self.layout.planes[0].bytesPerRow
        while self.ring.count < count { self.ring.append(try StoredRow(byteCount: byteCount)) }
    }

    /// Lends `count` rows from `first` on, at most as many as there is room for, until the next ones are lent.
    ///
    /// Rows may be lent again as long as they are among the last that there is room for.
    ///
    /// - Throws: What the source throws.
    func lend(_ count: Int, from first: Int) throws -> [UnsafePointer<UInt8>] {
        if let pixels {
            // The buffer lives as long as this does.
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

    /// A part of the image, as it is; rows below it are not read.
    ///
    /// - Throws: What the source throws, `TransformError`, `ImageError`, `CancellationError`.
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

/// A row that was read.
private final class StoredRow {
    private let memory: AlignedMemory

    init(byteCount: Int) throws(ImageError) {
        self.memory = try AlignedMemory(byteCount: byteCount)
    }

    var bytes: UnsafeMutableRawBufferPointer { self.memory.bytes }
    var start: UnsafeMutablePointer<UInt8> { self.memory.start.assumingMemoryBound(to: UInt8.self) }
}
