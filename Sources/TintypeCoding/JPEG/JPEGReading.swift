// SPDX-License-Identifier: Apache-2.0

import TintypeImage

/// Reads one complete file from the top; its end may be missing if the options allow that.
final class JPEGReading: RowSource {
    let layout: PixelLayout
    private var decompressor: JPEGDecompressor
    private let allowsTruncated: Bool
    private var failed = false

    /// Reads up to the first row, which includes all scans of an image that has several.
    ///
    /// - Parameters:
    ///   - source: All bytes of the file, which must outlive the object.
    ///   - header: The parsed header of the file.
    ///   - divisor: The divisor of both sides: 1, 2, 4 or 8.
    ///   - options: The options that say how damage and inks are handled.
    ///   - shortcuts: The shortcuts that the decoder may take.
    ///   - work: The counter of the decode's work.
    /// - Throws: `CodingError`, `CancellationError`.
    init(
        _ source: UnsafeRawBufferPointer,
        _ header: JPEGHeader,
        divisor: Int,
        options: DecodeOptions,
        shortcuts: JPEGCoder.Shortcuts,
        work: DecodeWork
    ) throws {
        self.allowsTruncated = options.allowsTruncated
        // Refuse an image that is certain to exceed the budget before doing any of the work.
        let scans = try JPEGScans(source, header, leavesOut: divisor == 8 && shortcuts.contains(.scans), work: work)
        try work.require(scans.units)
        let color = JPEGColor(header, options.color)
        let smallestOwnEntropy = header.hasScans ? nil : shortcuts.smallestOwnEntropy(ofFile: source.count)
        func start(_ bytes: UnsafeRawBufferPointer, leavingOut needless: [Range<Int>] = []) throws -> JPEGDecompressor {
            let decompressor = try JPEGDecompressor(color: color, work: work)
            decompressor.lend(bytes, isComplete: true)
            try decompressor.leaveOut(needless)
            if let smallest = smallestOwnEntropy { decompressor.allowOwnEntropy(smallest: smallest) }
            guard try decompressor.start(header, divisor: divisor) else { throw CodingError.truncated(.jpeg) }
            return decompressor
        }
        self.decompressor = try start(source, leavingOut: scans.needless)
        guard let layout = self.decompressor.layout else { throw CodingError.truncated(.jpeg) }
        self.layout = layout
        guard self.decompressor.hasScans else { return }
        do {
            do {
                _ = try self.decompressor.readScans()
            } catch let error as CodingError where error.code == .corrupt && !scans.needless.isEmpty {
                // The decodable part of a damaged image depends on all of its scans.
                self.decompressor = try start(source)
                _ = try self.decompressor.readScans()
            }
        } catch let error as CodingError where options.allowsTruncated {
            // The data behind the last complete scan is unreadable: read up to there.
            let isWorthwhile = error.code == .corrupt && self.decompressor.completedScanCount > 0
            guard isWorthwhile else { throw error }
            let intact = UnsafeRawBufferPointer(rebasing: source.prefix(self.decompressor.completedOffset))
            self.decompressor = try start(intact)
            _ = try self.decompressor.readScans()
        }
        try self.checkEnd()
        try self.decompressor.beginOutput()
    }

    var damage: ImageDamage { self.failed ? self.decompressor.damage.union(.missingData) : self.decompressor.damage }

    /// Whether Tintype's own entropy decoder reads the Huffman codes.
    var usesOwnEntropy: Bool { self.decompressor.usesOwnEntropy }

    /// Reads the next row; black if the data is unreadable and the options allow that.
    func readRow(into row: UnsafeMutableRawBufferPointer) throws {
        try self.readRows(into: row, count: 1)
    }

    /// Returns all pixels.
    func pixels() throws -> PixelBuffer {
        try PixelBuffer(self.layout, fillingUnsafely: { try self.readRows(into: $0, count: self.layout.height) })
    }

    private func readRows(into rows: UnsafeMutableRawBufferPointer, count: Int) throws {
        let start = self.decompressor.rowCount
        do {
            if !self.failed, try self.decompressor.readRows(into: rows, count: count) < count {
                throw CodingError.corrupt(.jpeg, "its rows end too early")
            }
            try self.checkEnd()
        } catch let error as CodingError where self.allowsTruncated && self.decompressor.rowCount > 0 {
            guard error.code == .corrupt else { throw error }
            self.failed = true
        }
        let given = self.failed ? self.decompressor.rowCount - start : count
        guard given < count else { return }
        let bytesPerRow = self.layout.planes[0].bytesPerRow
        UnsafeMutableRawBufferPointer(rebasing: rows[(given * bytesPerRow)...])
            .initializeMemory(as: UInt8.self, repeating: 0)
    }

    private func checkEnd() throws(CodingError) {
        if !self.allowsTruncated, self.decompressor.endIsMissing { throw .truncated(.jpeg) }
    }
}
