// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Numbers as a reader wants them: about four significant digits.
enum Figure {
    /// The number in decimal, never in exponents.
    static func text(_ value: Double) -> String {
        guard value.isFinite else { return "-" }
        if value == value.rounded(), abs(value) < 1e7 { return String(Int(value)) }
        let digits =
            switch abs(value) {
            case 1000...: 0
            case 100..<1000: 1
            case 10..<100: 2
            case 1..<10: 3
            case 0.1..<1: 4
            default: 5
            }
        return String(format: "%.\(digits)f", value)
    }

    /// The median with its quartiles.
    static func text(_ summary: Summary) -> String {
        guard summary.count > 1 else { return self.text(summary.median) }
        return "\(self.text(summary.median)) [\(self.text(summary.lowerQuartile))-\(self.text(summary.upperQuartile))]"
    }
}
