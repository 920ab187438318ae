// SPDX-License-Identifier: Apache-2.0

/// A part of an image, in whole pixels.
public struct PixelRectangle: Sendable, Hashable, Codable {
    /// The number of columns to the left of it; negative if it begins outside.
    public var x: Int
    /// The number of rows above it; negative if it begins outside.
    public var y: Int
    /// Its columns.
    public var width: Int
    /// Its rows.
    public var height: Int

    /// Names a part by its corner and size.
    ///
    /// ```swift
    /// let transform = JPEGTransform(crop: PixelRectangle(x: 0, y: 160, width: 800, height: 600))
    /// ```
    public init(x: Int, y: Int, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }

    /// Returns the part of it within an image of `width` by `height`; `nil` if that is empty.
    package func cut(toWidth width: Int, height: Int) -> PixelRectangle? {
        guard let columns = Self.cut(self.x, self.width, to: width),
            let rows = Self.cut(self.y, self.height, to: height)
        else { return nil }
        return PixelRectangle(x: columns.lowerBound, y: rows.lowerBound, width: columns.count, height: rows.count)
    }

    private static func cut(_ start: Int, _ length: Int, to total: Int) -> Range<Int>? {
        let (end, overflow) = start.addingReportingOverflow(length)
        let first = max(0, start)
        let last = overflow && length > 0 ? total : min(total, end)
        return first < last ? first..<last : nil
    }
}
