/// The pixels of a picture that one pass of the Adam7 interlace holds.
///
/// Source: W3C PNG, third edition, section 8.1.
struct PNGPass: Equatable {
    /// The pixels of one of its scanlines.
    let width: Int
    /// Its scanlines.
    let height: Int
    /// The column of its first pixel.
    var left = 0
    /// The row of its first scanline.
    var top = 0
    /// From one of its columns to the next.
    var columnStep = 1
    /// From one of its rows to the next.
    var rowStep = 1
    /// The columns that a pixel stands for until later passes are there.
    var blockWidth = 1
    /// The rows that a pixel stands for until later passes are there.
    var blockHeight = 1

    /// The passes of an interlaced picture, those without pixels left out.
    static func adam7(width: Int, height: Int) -> [PNGPass] {
        let grid = [
            (0, 0, 8, 8, 8, 8), (4, 0, 8, 8, 4, 8), (0, 4, 4, 8, 4, 4), (2, 0, 4, 4, 2, 4), (0, 2, 2, 4, 2, 2),
            (1, 0, 2, 2, 1, 2), (0, 1, 1, 2, 1, 1),
        ]
        return grid.compactMap { left, top, columnStep, rowStep, blockWidth, blockHeight in
            guard width > left, height > top else { return nil }
            return PNGPass(
                width: (width - left + columnStep - 1) / columnStep,
                height: (height - top + rowStep - 1) / rowStep,
                left: left,
                top: top,
                columnStep: columnStep,
                rowStep: rowStep,
                blockWidth: blockWidth,
                blockHeight: blockHeight
            )
        }
    }
}
