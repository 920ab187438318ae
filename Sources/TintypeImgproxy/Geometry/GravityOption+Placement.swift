// SPDX-License-Identifier: Apache-2.0

import TintypeImage

extension GravityOption {
    /// Returns the place of a box of size `inner` in an image of size `outer`.
    ///
    /// Offsets in pixels are multiplied by `pixelRatio`. With `overhangs`, the box may leave the image, except for one
    /// pixel. Otherwise it stays inside if it is not larger. A smart place is the centre.
    func place(_ inner: PixelSize, in outer: PixelSize, pixelRatio: Double, overhangs: Bool = false) -> PixelRectangle {
        let x = self.start(
            of: inner.width,
            in: outer.width,
            edge: self.kind.horizontalEdge,
            offset: self.x,
            pixelRatio: pixelRatio,
            overhangs: overhangs
        )
        let y = self.start(
            of: inner.height,
            in: outer.height,
            edge: self.kind.verticalEdge,
            offset: self.y,
            pixelRatio: pixelRatio,
            overhangs: overhangs
        )
        return PixelRectangle(x: x, y: y, width: inner.width, height: inner.height)
    }

    private func start(
        of inner: Int,
        in outer: Int,
        edge: Kind.Edge,
        offset: Double,
        pixelRatio: Double,
        overhangs: Bool
    ) -> Int {
        let start: Int
        switch self.kind {
        case .focusPoint: start = Rounding.even(Double(outer) * offset) - inner / 2
        case .smart: start = Rounding.even(Double(outer - inner + 1) / 2)
        default:
            let pixels = Self.pixels(offset, of: outer, pixelRatio: pixelRatio)
            start =
                switch edge {
                case .low: pixels
                case .high: outer - inner - pixels
                // imgproxy adds 1, so a centred box lies half a pixel further than one would expect.
                case .center: Rounding.even(Double(outer - inner + 1) / 2) + pixels
                }
        }
        let range = overhangs ? (1 - inner)...(outer - 1) : 0...max(0, outer - inner)
        return min(max(start, range.lowerBound), range.upperBound)
    }

    /// Returns an offset in pixels along a side.
    static func pixels(_ offset: Double, of side: Int, pixelRatio: Double) -> Int {
        Rounding.even(offset.magnitude >= 1 ? offset * pixelRatio : offset * Double(side))
    }
}

extension GravityOption.Kind {
    /// A side of an image along an axis.
    fileprivate enum Edge { case low, center, high }

    fileprivate var horizontalEdge: Edge {
        switch self {
        case .west, .northWest, .southWest: .low
        case .east, .northEast, .southEast: .high
        case .center, .north, .south, .focusPoint, .smart, .tile: .center
        }
    }

    fileprivate var verticalEdge: Edge {
        switch self {
        case .north, .northWest, .northEast: .low
        case .south, .southWest, .southEast: .high
        case .center, .west, .east, .focusPoint, .smart, .tile: .center
        }
    }
}
