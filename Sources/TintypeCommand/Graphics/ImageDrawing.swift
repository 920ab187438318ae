// SPDX-License-Identifier: Apache-2.0

import Tintype

/// Columns and rows of a terminal's cells.
struct CellSize: Sendable, Hashable {
    var columns: Int
    var rows: Int
}

/// How images get onto a terminal.
enum GraphicsProtocol: String, Sendable, CaseIterable {
    case kitty
    case sixel
    case blocks
}

/// Brings images to the size of some cells, and writes them for a terminal.
struct ImageDrawing: Sendable {
    /// The cell size of a VT340, twice as high as wide, for terminals that do not report theirs.
    private static let usualCell = PixelExtent(width: 10, height: 20)

    /// A width and a height in pixels, which need not be whole.
    struct PixelExtent: Sendable, Hashable {
        var width: Double
        var height: Double
    }

    let graphics: GraphicsProtocol
    let colors: BlockEncoder.Colors
    /// The pixels of an image that a cell shows.
    let cell: PixelExtent
    /// Whether the terminal has told the size of its cells.
    let isCellKnown: Bool

    /// Prepares to draw; `cell` is the size of a cell in pixels, if it is known.
    init(_ graphics: GraphicsProtocol, colors: BlockEncoder.Colors, cell: PixelExtent?) {
        let size = cell ?? Self.usualCell
        self.graphics = graphics
        self.colors = colors
        self.isCellKnown = cell != nil
        // With blocks, a pixel is as wide as a cell.
        self.cell = graphics == .blocks ? PixelExtent(width: 1, height: size.height / size.width) : size
    }

    /// An image, ready to be written.
    struct Drawing: Sendable {
        let size: CellSize
        let content: Content

        enum Content: Sendable {
            /// Written at the cursor at once.
            case pixels(TerminalPixels)
            /// Written line by line.
            case lines([[UInt8]])
        }
    }

    /// The most pixels that `cells` have room for, at least one.
    func room(in cells: CellSize) -> (width: Int, height: Int) {
        var height = max(1, Int(Double(cells.rows) * self.cell.height))
        // A band that reaches over the last row would scroll the terminal.
        if self.graphics == .sixel { height = max(1, height / SixelEncoder.bandHeight) * SixelEncoder.bandHeight }
        return (max(1, Int(Double(cells.columns) * self.cell.width)), height)
    }

    /// The resize that brings an image into `cells`; it never enlarges.
    func resize(into cells: CellSize) -> Resize {
        let room = self.room(in: cells)
        return .fit(width: room.width, height: room.height)
    }

    /// Prepares an image for `cells`, in which it is as large as it can be without being enlarged.
    ///
    /// - Throws: `TransformError`, `ImageError` when memory runs out, `CancellationError`.
    func drawing(of image: Image, in cells: CellSize) throws -> Drawing {
        let fitting = try image.resized(self.resize(into: cells))
        guard self.graphics == .blocks else {
            let size = CellSize(
                columns: min(cells.columns, Int((Double(fitting.width) / self.cell.width).rounded(.up))),
                rows: min(cells.rows, Int((Double(fitting.height) / self.cell.height).rounded(.up)))
            )
            return Drawing(size: size, content: .pixels(TerminalPixels(fitting.pixels)))
        }
        let halves = (Double(fitting.height) * 2 / self.cell.height).rounded()
        let height = min(cells.rows * 2, max(1, Int(halves)))
        let stretched = try fitting.resized(.stretch(width: fitting.width, height: height, upscales: true))
        let lines = BlockEncoder.lines(TerminalPixels(stretched.pixels), colors: self.colors)
        return Drawing(size: CellSize(columns: fitting.width, rows: lines.count), content: .lines(lines))
    }

    /// The bytes that draw pixels at the cursor.
    ///
    /// - Throws: `CancellationError`.
    func bytes(of pixels: TerminalPixels, id: UInt32, cells: CellSize, isStill: Bool) throws -> [UInt8] {
        self.graphics == .sixel
            ? try SixelEncoder.encode(pixels, isDithered: isStill)
            : KittyEncoder.show(pixels, id: id, cells: self.isCellKnown ? nil : cells)
    }
}
