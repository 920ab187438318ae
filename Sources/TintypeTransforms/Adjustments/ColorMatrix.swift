// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A linear change of colours: each result is a weighted sum of red, green and blue plus a constant.
///
/// Colours are 0 to 1 with straight alpha; alpha does not change.
package struct ColorMatrix: Equatable {
    /// One row for each result colour: the factors of red, green and blue, then the constant.
    private(set) var rows: [[Double]]

    /// The matrix that changes nothing.
    static let identity = ColorMatrix(rows: [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])

    private init(rows: [[Double]]) {
        self.rows = rows
    }

    /// Creates a matrix of three rows of factors, with constants of 0.
    init(_ red: [Double], _ green: [Double], _ blue: [Double]) {
        self.init(rows: [red + [0], green + [0], blue + [0]])
    }

    /// Creates a matrix that applies the same factor and constant to each colour.
    init(slope: Double, intercept: Double = 0) {
        self.init(rows: [[slope, 0, 0, intercept], [0, slope, 0, intercept], [0, 0, slope, intercept]])
    }

    /// Creates a matrix between the identity, at a share of 0, and `other`, at 1.
    init(towards other: ColorMatrix, share: Double) {
        self.init(
            rows: zip(Self.identity.rows, other.rows).map { from, to in
                zip(from, to).map { $0 * (1 - share) + $1 * share }
            }
        )
    }

    /// Returns one matrix that does the same as this one and then `next`.
    func followed(by next: ColorMatrix) -> ColorMatrix {
        ColorMatrix(
            rows: next.rows.map { row in
                (0..<4).map { column in
                    (0..<3).reduce(column == 3 ? row[3] : 0) { $0 + row[$1] * self.rows[$1][column] }
                }
            }
        )
    }

    /// Whether each result colour depends only on the same source colour.
    var isDiagonal: Bool {
        (0..<3).allSatisfy { row in (0..<3).allSatisfy { $0 == row || self.rows[row][$0] == 0 } }
    }

    /// Whether grays do not change, except for rounding.
    var keepsGrays: Bool {
        self.rows.allSatisfy { abs($0[0] + $0[1] + $0[2] - 1) < 1e-9 && abs($0[3]) < 1e-9 }
    }

    /// Whether each gray becomes a gray, except for rounding.
    var makesGraysOfGrays: Bool {
        let sums = self.rows.map { $0[0] + $0[1] + $0[2] }
        return (1..<3).allSatisfy { abs(sums[$0] - sums[0]) < 1e-9 && abs(self.rows[$0][3] - self.rows[0][3]) < 1e-9 }
    }

    /// Whether every colour becomes a gray.
    var makesGrays: Bool {
        self.rows[1] == self.rows[0] && self.rows[2] == self.rows[0]
    }

    /// Returns one result colour for `value`; the matrix must be diagonal, or the pixel gray.
    func apply(to value: Double, channel: Int) -> Double {
        self.rows[channel][channel] * value + self.rows[channel][3]
    }

    /// All factors and constants, row by row.
    var numbers: [Float] { self.rows.joined().map { Float($0) } }
}

extension ColorMatrix {
    /// Returns the matrix of Filter Effects Module Level 1, sections 9.3 (saturate, hueRotate) and 13 (short forms).
    static func saturation(_ amount: Double) -> ColorMatrix {
        ColorMatrix(
            [0.213 + 0.787 * amount, 0.715 - 0.715 * amount, 0.072 - 0.072 * amount],
            [0.213 - 0.213 * amount, 0.715 + 0.285 * amount, 0.072 - 0.072 * amount],
            [0.213 - 0.213 * amount, 0.715 - 0.715 * amount, 0.072 + 0.928 * amount]
        )
    }

    static func hueRotation(degrees: Double) -> ColorMatrix {
        let angle = degrees.remainder(dividingBy: 360) * .pi / 180
        let (c, s) = (cos(angle), sin(angle))
        return ColorMatrix(
            [0.213 + c * 0.787 - s * 0.213, 0.715 - c * 0.715 - s * 0.715, 0.072 - c * 0.072 + s * 0.928],
            [0.213 - c * 0.213 + s * 0.143, 0.715 + c * 0.285 + s * 0.140, 0.072 - c * 0.072 - s * 0.283],
            [0.213 - c * 0.213 - s * 0.787, 0.715 - c * 0.715 + s * 0.715, 0.072 + c * 0.928 + s * 0.072]
        )
    }

    /// The matrix that gives every colour the luma of ITU-R BT.709.
    static let grayscale = ColorMatrix([0.2126, 0.7152, 0.0722], [0.2126, 0.7152, 0.0722], [0.2126, 0.7152, 0.0722])

    static let sepia = ColorMatrix([0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131])
}
