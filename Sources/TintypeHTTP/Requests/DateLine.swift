// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The `Date` field of a response as the bytes of its line, which change once a second.
package struct DateLine: Sendable, Equatable {
    private(set) var bytes: [UInt8]
    private var second: Int

    /// Creates the line for a second, counted from 1970.
    package init(second: Int) {
        self.second = second
        self.bytes = Self.line(second)
    }

    /// Writes the line anew if `second`, the seconds since 1970, has changed.
    package mutating func update(to second: Int) {
        guard second != self.second else { return }
        self = DateLine(second: second)
    }

    private static func line(_ second: Int) -> [UInt8] {
        let date = Date(timeIntervalSince1970: Double(second))
        return Array("Date: \(HTTPDate.text(of: date))\r\n".utf8)
    }
}
