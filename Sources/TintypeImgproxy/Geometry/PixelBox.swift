// SPDX-License-Identifier: Apache-2.0

/// A size in pixels, at least 1 a side.
package struct PixelSize: Sendable, Hashable {
    package let width: Int
    package let height: Int

    package init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// The longer side.
    var longerSide: Int { max(self.width, self.height) }

    /// The size after a turn by 90 degrees.
    var transposed: PixelSize { PixelSize(width: self.height, height: self.width) }
}

/// A box of pixels.
///
/// Its origin is the top left corner.
package struct PixelBox: Sendable, Hashable {
    package let x: Int
    package let y: Int
    package let width: Int
    package let height: Int

    package init(x: Int, y: Int, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }

    package var size: PixelSize { PixelSize(width: self.width, height: self.height) }
}
