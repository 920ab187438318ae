// SPDX-License-Identifier: Apache-2.0

import CTintypeCoefficients
public import FoundationEssentials
public import TintypeCoding

/// The coefficients of a JPEG as libjpeg reads them.
public struct JPEGCoefficients: Sendable, Equatable {
    /// The blocks of a component.
    public struct Component: Sendable, Equatable {
        public let horizontal: Int
        public let vertical: Int
        public let columns: Int
        public let rows: Int
        /// The quantization table, in rows.
        public let table: [UInt16]
        /// The 64 coefficients of each block, in rows.
        let blocks: [Int16]
    }

    public let width: Int
    public let height: Int
    /// The number of the colour space in libjpeg.
    public let colorSpace: Int
    public let components: [Component]

    /// Creates the coefficients of a file, or returns `nil` if libjpeg cannot read it.
    public init?(_ data: Data) {
        let bytes = Array(data)
        guard
            let image = bytes.withUnsafeBufferPointer({ bytes in
                bytes.baseAddress.flatMap { ccoefficients_read($0, bytes.count) }
            })
        else { return nil }
        defer { ccoefficients_free(image) }
        self.width = Int(ccoefficients_width(image))
        self.height = Int(ccoefficients_height(image))
        self.colorSpace = Int(ccoefficients_color_space(image))
        self.components = (0..<ccoefficients_component_count(image)).map { index in
            let info = ccoefficients_component_at(image, index)
            var blocks: [Int16] = []
            blocks.reserveCapacity(Int(info.columns) * Int(info.rows) * 64)
            for row in 0..<info.rows {
                let start = ccoefficients_row(image, index, row)
                blocks.append(contentsOf: UnsafeBufferPointer(start: start, count: Int(info.columns) * 64))
            }
            return Component(
                horizontal: Int(info.horizontal),
                vertical: Int(info.vertical),
                columns: Int(info.columns),
                rows: Int(info.rows),
                table: withUnsafeBytes(of: info.table) { Array($0.bindMemory(to: UInt16.self)) },
                blocks: blocks
            )
        }
    }

    /// The size of a unit of interleaved blocks, in pixels.
    public var unit: (width: Int, height: Int) {
        guard self.components.count > 1 else { return (8, 8) }
        return (
            8 * (self.components.map(\.horizontal).max() ?? 1), 8 * (self.components.map(\.vertical).max() ?? 1)
        )
    }

    /// Returns the first difference from `source` after a turn and a crop that begins at a block, or `nil` if there is
    /// none.
    ///
    /// A reversed cosine transform changes the signs of the odd frequencies.
    public func difference(
        from source: JPEGCoefficients,
        turned turn: JPEGTransform.Turn = .none,
        from origin: (x: Int, y: Int) = (0, 0),
        isGray: Bool = false
    ) -> String? {
        let count = isGray ? 1 : source.components.count
        guard self.components.count == count else { return "it has \(self.components.count) components" }
        let swaps = [.rotate90, .rotate270, .transpose, .transverse].contains(turn)
        let mirrorsColumns = [.flipHorizontal, .rotate180, .rotate90, .transverse].contains(turn)
        let mirrorsRows = [.flipVertical, .rotate180, .rotate270, .transverse].contains(turn)
        for index in 0..<count {
            let (new, old) = (self.components[index], source.components[index])
            let isSingle = count == 1
            let sampling = (across: isSingle ? 1 : new.horizontal, down: isSingle ? 1 : new.vertical)
            let unit = self.unit
            // The whole units of the turned source, which a mirror can move.
            let whole = (
                columns: (swaps ? source.height : source.width) / unit.width * sampling.across,
                rows: (swaps ? source.width : source.height) / unit.height * sampling.down
            )
            let (left, top) = (origin.x / unit.width * sampling.across, origin.y / unit.height * sampling.down)
            for place in 0..<64 where new.table[place] != old.table[swaps ? place % 8 * 8 + place / 8 : place] {
                return "table \(index) differs at \(place)"
            }
            for row in 0..<new.rows {
                for column in 0..<new.columns {
                    let x = mirrorsColumns ? whole.columns - 1 - left - column : left + column
                    let y = mirrorsRows ? whole.rows - 1 - top - row : top + row
                    let (fromColumn, fromRow) = swaps ? (y, x) : (x, y)
                    guard (0..<old.columns).contains(fromColumn), (0..<old.rows).contains(fromRow) else {
                        return "block \(column),\(row) of component \(index) is from nowhere"
                    }
                    let start = (row * new.columns + column) * 64
                    let from = (fromRow * old.columns + fromColumn) * 64
                    for place in 0..<64 {
                        let (across, down) = (place % 8, place / 8)
                        var sign: Int16 = 1
                        if mirrorsColumns, across % 2 == 1 { sign = -sign }
                        if mirrorsRows, down % 2 == 1 { sign = -sign }
                        let expected = old.blocks[from + (swaps ? across * 8 + down : place)] &* sign
                        if new.blocks[start + place] != expected {
                            return "block \(column),\(row) of component \(index) differs at \(across),\(down)"
                        }
                    }
                }
            }
        }
        return nil
    }
}
