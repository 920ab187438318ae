import TintypeImage

/// The rows of an interleaved buffer, split into planes and joined again: zimg works on planes.
struct InterleavedRows {
    private let base: UnsafeRawPointer?
    private let bytesPerRow: Int
    let channelCount: Int

    init(base: UnsafeRawPointer?, layout: PixelLayout) {
        self.base = base
        self.bytesPerRow = layout.planes[0].bytesPerRow
        self.channelCount = layout.format.channelCount
    }

    /// Writes the samples of one row, from column `left` up to `right`, to one plane row each.
    func split(row: Int, left: Int, right: Int, to planes: (Int) -> UnsafeMutablePointer<UInt8>) {
        guard let base else { return }
        let row = (base + row * self.bytesPerRow).assumingMemoryBound(to: UInt8.self)
        switch self.channelCount {
        case 1: planes(0).advanced(by: left).update(from: row + left, count: right - left)
        case 3:
            let (red, green, blue) = (planes(0), planes(1), planes(2))
            for column in left..<right {
                red[column] = row[column * 3]
                green[column] = row[column * 3 + 1]
                blue[column] = row[column * 3 + 2]
            }
        default:
            let (red, green, blue, alpha) = (planes(0), planes(1), planes(2), planes(3))
            for column in left..<right {
                red[column] = row[column * 4]
                green[column] = row[column * 4 + 1]
                blue[column] = row[column * 4 + 2]
                alpha[column] = row[column * 4 + 3]
            }
        }
    }

    /// Reads the samples of one row back from one plane row each.
    func join(row: Int, left: Int, right: Int, from planes: (Int) -> UnsafeMutablePointer<UInt8>) {
        guard let base else { return }
        // Only the target's rows are joined, and its memory is mutable.
        let row = UnsafeMutablePointer(mutating: (base + row * self.bytesPerRow).assumingMemoryBound(to: UInt8.self))
        switch self.channelCount {
        case 1: row.advanced(by: left).update(from: planes(0) + left, count: right - left)
        case 3:
            let (red, green, blue) = (planes(0), planes(1), planes(2))
            for column in left..<right {
                row[column * 3] = red[column]
                row[column * 3 + 1] = green[column]
                row[column * 3 + 2] = blue[column]
            }
        default:
            let (red, green, blue, alpha) = (planes(0), planes(1), planes(2), planes(3))
            for column in left..<right {
                row[column * 4] = red[column]
                row[column * 4 + 1] = green[column]
                row[column * 4 + 2] = blue[column]
                row[column * 4 + 3] = alpha[column]
            }
        }
    }
}
