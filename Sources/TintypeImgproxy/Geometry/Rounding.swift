// SPDX-License-Identifier: Apache-2.0

/// The ways in which imgproxy rounds, defined for all values.
enum Rounding {
    /// A bound far over every size, so that sums and products of two sizes do not overflow.
    private static let bound = Double(Int32.max)

    /// Returns the nearest whole number.
    ///
    /// A half goes away from zero.
    static func nearest(_ value: Double) -> Int {
        Int(self.clamp(value).rounded(.toNearestOrAwayFromZero))
    }

    /// Returns the nearest whole number.
    ///
    /// A half goes to the even neighbour.
    static func even(_ value: Double) -> Int {
        Int(self.clamp(value).rounded(.toNearestOrEven))
    }

    private static func clamp(_ value: Double) -> Double {
        value.isNaN ? 0 : min(max(value, -self.bound), self.bound)
    }
}
