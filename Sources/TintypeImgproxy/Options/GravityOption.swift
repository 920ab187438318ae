// SPDX-License-Identifier: Apache-2.0

/// A place in an image: of the part that a crop keeps, or of the image on a larger canvas.
package struct GravityOption: Sendable, Hashable {
    /// The kinds of places, with their names in URLs.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case center = "ce"
        case north = "no"
        case south = "so"
        case east = "ea"
        case west = "we"
        case northEast = "noea"
        case northWest = "nowe"
        case southEast = "soea"
        case southWest = "sowe"
        /// The point at `x` and `y`, as shares of the sides.
        case focusPoint = "fp"
        /// The part that draws the eye. Only for crops.
        case smart = "sm"
        /// Repeats a watermark. Only for watermarks; `x` and `y` are the gaps.
        case tile = "re"
    }

    package var kind: Kind
    /// The horizontal offset, inwards from a named side: pixels from 1 on, a share of the width below.
    package var x: Double
    /// The vertical offset, likewise.
    package var y: Double

    package init(_ kind: Kind = .center, x: Double = 0, y: Double = 0) {
        self.kind = kind
        self.x = x
        self.y = y
    }

    /// The kinds that a crop takes.
    static let cropKinds = Set(Kind.allCases).subtracting([.tile])
    /// The kinds that an extension takes.
    static let extendKinds = Set(Kind.allCases).subtracting([.tile, .smart])
    /// The kinds that a watermark takes.
    static let watermarkKinds = Set(Kind.allCases).subtracting([.focusPoint, .smart])
    /// Kinds of imgproxy Pro.
    static let proNames: Set<String> = ["ch", "obj", "objw"]
}
