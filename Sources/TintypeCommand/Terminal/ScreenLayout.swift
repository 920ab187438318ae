// SPDX-License-Identifier: Apache-2.0

/// Where images go on a terminal: one in the first line, or several in a grid.
struct ScreenLayout: Sendable, Hashable {
    /// Room for one image.
    struct Place: Sendable, Hashable {
        /// The first line, from 0.
        let row: Int
        /// The first column, from 0.
        let column: Int
        /// The cells of the image, without the label's line.
        let size: CellSize
        /// Whether its first line is its name.
        let hasLabel: Bool
    }

    /// Tiles that are smaller than this go to a page of their own.
    private static let leastTile = CellSize(columns: 16, rows: 8)
    private static let gap = 2

    /// The places, in the order of the images; as many as a page has.
    let places: [Place]

    /// Lays out so many of `count` images as go on a page.
    ///
    /// - Parameters:
    ///   - count: The images, at least one.
    ///   - area: The cells of the page.
    ///   - cellRatio: How much higher than wide a cell is.
    init(_ count: Int, in area: CellSize, cellRatio: Double) {
        guard count > 1 else {
            self.places = [Place(row: 0, column: 0, size: area, hasLabel: false)]
            return
        }
        let most = Self.most(of: area.columns + Self.gap, Self.leastTile.columns + Self.gap)
        let mostRows = Self.most(of: area.rows, Self.leastTile.rows)
        let shown = min(count, most * mostRows)
        // The columns that leave most room for square images.
        let columns = (1...min(most, shown)).max { first, second in
            let sides = [first, second].map { columns in
                let tile = Self.tile(columns, of: shown, in: area)
                let side = min(Double(tile.columns), Double(tile.rows - 1) * cellRatio)
                return (shown + columns - 1) / columns > mostRows ? 0 : side
            }
            return sides[0] < sides[1]
        }
        let columnCount = columns ?? 1
        let tile = Self.tile(columnCount, of: shown, in: area)
        self.places = (0..<shown).map { index in
            Place(
                row: index / columnCount * tile.rows,
                column: index % columnCount * (tile.columns + Self.gap),
                size: CellSize(columns: tile.columns, rows: max(1, tile.rows - 1)),
                hasLabel: true
            )
        }
    }

    private static func most(of room: Int, _ least: Int) -> Int { max(1, room / least) }

    private static func tile(_ columns: Int, of count: Int, in area: CellSize) -> CellSize {
        let rows = (count + columns - 1) / columns
        return CellSize(
            columns: max(1, (area.columns + Self.gap) / columns - Self.gap),
            rows: max(1, area.rows / rows)
        )
    }
}
