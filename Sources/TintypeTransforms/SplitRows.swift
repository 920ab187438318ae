import TintypeImage

/// Rows that can be split into planes, which is what zimg works on.
protocol SplitRows {
    /// The samples of one pixel.
    var channelCount: Int { get }

    /// Writes the samples of one row, from column `left` up to `right`, to one plane row each.
    ///
    /// Rows are asked for from the top, each at most once. False when the row can't be read.
    func split(row: Int, left: Int, right: Int, to planes: (Int) -> UnsafeMutablePointer<UInt8>) -> Bool
}

/// The rows of a buffer that is there.
struct StoredRows: SplitRows {
    private let rows: InterleavedRows

    init(_ rows: InterleavedRows) {
        self.rows = rows
    }

    var channelCount: Int { self.rows.channelCount }

    func split(row: Int, left: Int, right: Int, to planes: (Int) -> UnsafeMutablePointer<UInt8>) -> Bool {
        self.rows.split(row: row, left: left, right: right, to: planes)
        return true
    }
}

/// The rows of a source that gives them one at a time; the last one is held.
final class StreamedRows: SplitRows {
    private let source: any RowSource
    private let row: UnsafeMutableRawBufferPointer
    private let interleaved: InterleavedRows
    private var nextRow = 0
    /// Why reading failed.
    private(set) var failure: (any Error)?

    init(_ source: any RowSource) {
        self.source = source
        let layout = source.layout
        self.row = .allocate(byteCount: layout.planes[0].bytesPerRow, alignment: PixelLayout.alignment)
        self.row.initializeMemory(as: UInt8.self, repeating: 0)
        self.interleaved = InterleavedRows(base: UnsafeRawPointer(self.row.baseAddress), layout: layout)
    }

    deinit {
        self.row.deallocate()
    }

    var channelCount: Int { self.interleaved.channelCount }

    func split(row: Int, left: Int, right: Int, to planes: (Int) -> UnsafeMutablePointer<UInt8>) -> Bool {
        do {
            // Rows above the part that is resampled are read past.
            while self.nextRow <= row {
                try self.source.readRow(into: self.row)
                self.nextRow += 1
            }
        } catch {
            self.failure = error
            return false
        }
        self.interleaved.split(row: 0, left: left, right: right, to: planes)
        return true
    }
}
