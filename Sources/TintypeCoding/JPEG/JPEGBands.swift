// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency
import TintypeImage

/// An image in one scan with restart markers, whose bands of rows several lanes decode at once.
///
/// Decoding behind a restart marker does not depend on earlier data, so that a decoder can begin there. It begins one
/// row of blocks above its band and discards the pixels of that row, because colours are interpolated between rows. A
/// lane that continues with the next band keeps its decoder.
///
/// Source: ITU-T T.81, B.2.1 and E.2.4.
final class JPEGBands: Sendable {
    /// The fewest stored pixels of an image to divide: half of a smaller one saves only a few milliseconds.
    static let smallestPixelCount = 2_000_000
    /// The fewest stored pixels of a band.
    ///
    /// A band takes one or two milliseconds. Other work of a helping lane waits for that long.
    static let pixelsPerBand = 1 << 18

    /// The size and format of the whole image.
    let layout: PixelLayout
    private let data: Data
    private let header: JPEGHeader
    private let restarts: JPEGRestarts
    private let divisor: Int
    private let options: DecodeOptions
    private let smallestOwnEntropy: Int?
    private let queue: Locked<BandQueue>
    private let damageOfBands = Locked(ImageDamage())

    /// The damage found in the bands so far.
    var damage: ImageDamage { self.damageOfBands.withLock { $0 } }
    /// The number of bands, at least two.
    var count: Int { self.restarts.starts.count }

    /// Finds the places where bands can begin.
    ///
    /// Returns `nil` if there are too few, or if any marker is unusual, because the decoded image then depends on
    /// earlier data.
    ///
    /// - Parameters:
    ///   - data: The whole file.
    ///   - header: The parsed header of the file.
    ///   - layout: The layout of the decoded image.
    ///   - divisor: The divisor of both sides: 1, 2, 4 or 8.
    ///   - options: The limits, and the handling of inks.
    ///   - shortcuts: The shortcuts that the decoder may take.
    ///   - pixelsPerBand: The fewest pixels of a band, as stored.
    /// - Throws: `CodingError`, `CancellationError`.
    init?(
        _ data: Data,
        _ header: JPEGHeader,
        layout: PixelLayout,
        divisor: Int,
        options: DecodeOptions,
        shortcuts: JPEGCoder.Shortcuts,
        pixelsPerBand: Int = JPEGBands.pixelsPerBand
    ) throws {
        let work = DecodeWork(options.limits, format: .jpeg)
        // Lanes do not know the work of each other, so an image that might exceed the budget is not divided.
        let units = header.width * header.height * (header.components.count == 4 ? 16 : 1)
        guard units + data.count * DecodeWork.unitsPerByte <= work.left else { return nil }
        guard
            let restarts = try data.withUnsafeBytes({
                try JPEGRestarts($0, header, pixelsPerBand: pixelsPerBand, work: work)
            })
        else { return nil }
        self.layout = layout
        self.data = data
        self.header = header
        self.restarts = restarts
        self.divisor = divisor
        self.options = options
        self.smallestOwnEntropy = shortcuts.smallestOwnEntropy(ofFile: data.count)
        self.queue = Locked(BandQueue(count: restarts.starts.count))
    }

    /// Decodes bands to their rows of `pixels` until no band is left, or other work wants the lane.
    ///
    /// - Parameters:
    ///   - pixels: The memory of the whole image.
    ///   - isFirst: Whether the lane begins with the first band.
    ///   - isWanted: Returns whether other work wants the lane. The method calls it before each band.
    /// - Throws: `CodingError`, `CancellationError`.
    func decode(into pixels: UnsafeMutableRawBufferPointer, isFirst: Bool, until isWanted: () -> Bool) throws {
        let work = DecodeWork(self.options.limits, format: .jpeg)
        try self.data.withUnsafeBytes { source in
            var decompressor: JPEGDecompressor?
            var last = isFirst ? -1 : nil
            while !isWanted(), let band = self.queue.withLock({ $0.next(after: last) }) {
                // Free the old decoder first, because the memory estimate counts one for each lane.
                if last != band - 1 { decompressor = nil }
                let current = try decompressor ?? self.decompressor(at: band, of: source, work: work)
                let rows = self.rows(of: band)
                let bytesPerRow = self.layout.planes[0].bytesPerRow
                let part = pixels[rows.lowerBound * bytesPerRow..<rows.upperBound * bytesPerRow]
                try Self.read(rows.count, from: current, into: UnsafeMutableRawBufferPointer(rebasing: part))
                self.damageOfBands.withLock { $0.formUnion(current.damage) }
                decompressor = current
                last = band
            }
        }
    }

    /// Returns the rows of the decoded image that belong to a band.
    private func rows(of band: Int) -> Range<Int> {
        let starts = self.restarts.starts
        func row(_ band: Int) -> Int { starts[band].firstRow * self.restarts.rowHeight / self.divisor }
        return row(band)..<(band + 1 < starts.count ? row(band + 1) : self.layout.height)
    }

    /// Returns a decoder whose next row is the first one of `band`.
    private func decompressor(
        at band: Int,
        of source: UnsafeRawBufferPointer,
        work: DecodeWork
    ) throws -> JPEGDecompressor {
        let start = self.restarts.starts[band]
        let passedHeight = start.row * self.restarts.rowHeight
        let head = self.restarts.head(height: self.header.height - passedHeight)
        let header = try JPEGHeader(Data(head), work: work)
        let decompressor = try JPEGDecompressor(color: JPEGColor(self.header, self.options.color), work: work)
        if let smallest = self.smallestOwnEntropy { decompressor.allowOwnEntropy(smallest: smallest) }
        try head.withUnsafeBytes { head in
            decompressor.lend(head, isComplete: false)
            let scan = JPEGDecompressor.RestartedScan(
                bytes: UnsafeRawBufferPointer(rebasing: source[start.offset...]),
                restartCount: start.restartCount
            )
            guard try decompressor.start(header, divisor: self.divisor, scan: scan) else {
                throw CodingError.truncated(.jpeg)
            }
        }
        let passedRows = self.rows(of: band).lowerBound - passedHeight / self.divisor
        try withUnsafeTemporaryAllocation(
            byteCount: passedRows * self.layout.planes[0].bytesPerRow,
            alignment: PixelLayout.alignment
        ) { try Self.read(passedRows, from: decompressor, into: $0) }
        return decompressor
    }

    private static func read(
        _ count: Int,
        from decompressor: JPEGDecompressor,
        into rows: UnsafeMutableRawBufferPointer
    ) throws {
        let given = try decompressor.readRows(into: rows, count: count)
        guard given == count, !decompressor.endIsMissing else { throw CodingError.truncated(.jpeg) }
    }
}

/// Hands out bands to lanes, each one once.
///
/// The remaining bands form parts. A lane works through one part. A lane without a part takes the second half of the
/// largest, so that few bands need a new decoder.
struct BandQueue {
    private var parts: [Range<Int>]

    init(count: Int) {
        self.parts = [0..<count]
    }

    /// Returns the next band for a lane, if possible the one after `last`; `nil` if no band is left.
    mutating func next(after last: Int?) -> Int? {
        if let last, let index = self.parts.firstIndex(where: { $0.lowerBound == last + 1 }) {
            return self.take(last + 1, of: index)
        }
        guard let index = self.parts.indices.max(by: { self.parts[$0].count < self.parts[$1].count }) else {
            return nil
        }
        let part = self.parts[index]
        return self.take(part.lowerBound + part.count / 2, of: index)
    }

    private mutating func take(_ band: Int, of index: Int) -> Int {
        let part = self.parts.remove(at: index)
        self.parts += [part.lowerBound..<band, band + 1..<part.upperBound].filter { !$0.isEmpty }
        return band
    }
}

/// The places of a scan where a decoder can begin, and the header that it needs.
private struct JPEGRestarts {
    /// The first band begins with the scan, other bands behind a restart marker at the end of a row of blocks.
    struct Start {
        /// The row of blocks that follows the start.
        let row: Int
        /// The first row of blocks that belongs to the band.
        let firstRow: Int
        /// The offset of that data in the file.
        let offset: Int
        let restartCount: Int
    }

    /// The height in pixels of a row of blocks, as stored.
    let rowHeight: Int
    private(set) var starts: [Start] = []
    /// The segments that a decode needs, up to the scan.
    private var head: [UInt8] = [0xFF, 0xD8]
    private var heightOffset: Int?

    /// Finds the starts; `nil` if there is only one, or the file breaks a rule of the format.
    init?(
        _ source: UnsafeRawBufferPointer,
        _ header: JPEGHeader,
        pixelsPerBand: Int,
        work: DecodeWork
    ) throws {
        // A scan of one component has blocks of its own.
        let isInterleaved = header.components.count > 1
        let across = isInterleaved ? header.components.map(\.horizontal).max() ?? 1 : 1
        let down = isInterleaved ? header.components.map(\.vertical).max() ?? 1 : 1
        self.rowHeight = 8 * down
        guard header.restartInterval > 0, let scanStart = self.readHead(of: source) else { return nil }
        let blocksPerRow = (header.width + 8 * across - 1) / (8 * across)
        let rowCount = (header.height + self.rowHeight - 1) / self.rowHeight
        let markerCount = (blocksPerRow * rowCount - 1) / header.restartInterval
        let rowsPerBand = max(1, pixelsPerBand / (header.width * self.rowHeight))
        self.starts = [Start(row: 0, firstRow: 0, offset: scanStart, restartCount: 0)]
        var offset = scanStart
        var count = 0
        while let marker = try JPEGScans.nextMarker(&offset, of: source, work) {
            guard count < markerCount else {
                if marker == 0xD9, self.starts.count > 1 { return }
                return nil
            }
            guard marker == 0xD0 + UInt8(count & 7) else { return nil }
            count += 1
            let (row, rest) = (count * header.restartInterval).quotientAndRemainder(dividingBy: blocksPerRow)
            guard rest == 0, row + 1 - self.starts[self.starts.count - 1].firstRow >= rowsPerBand,
                rowCount - row > rowsPerBand
            else { continue }
            self.starts.append(Start(row: row, firstRow: row + 1, offset: offset, restartCount: count))
        }
        return nil
    }

    /// Copies the segments that a decode needs, and returns the offset of the scan; `nil` if a segment is unexpected or
    /// cut.
    private mutating func readHead(of source: UnsafeRawBufferPointer) -> Int? {
        var offset = 2
        while offset + 4 <= source.count, source[offset] == 0xFF {
            let marker = source[offset + 1]
            let end = offset + 2 + Int(source[offset + 2]) << 8 + Int(source[offset + 3])
            guard end >= offset + 4, end <= source.count else { return nil }
            switch marker {
            case 0xC0 where self.heightOffset == nil, 0xC1 where self.heightOffset == nil:
                self.heightOffset = self.head.count + 5
                self.head += source[offset..<end]
            // The segments of JFIF and Adobe define the colour space of the components.
            case 0xC4, 0xDA, 0xDB, 0xDD, 0xE0, 0xEE: self.head += source[offset..<end]
            case 0xE1...0xEF, 0xFE: break
            default: return nil
            }
            offset = end
            if marker == 0xDA { return self.heightOffset == nil ? nil : end }
        }
        return nil
    }

    /// Returns the header for an image of another height.
    func head(height: Int) -> [UInt8] {
        var head = self.head
        if let offset = self.heightOffset {
            head[offset] = UInt8(truncatingIfNeeded: height >> 8)
            head[offset + 1] = UInt8(truncatingIfNeeded: height)
        }
        return head
    }
}
