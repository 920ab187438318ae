// SPDX-License-Identifier: Apache-2.0

/// The error for a row or a side that cannot be measured here, whose reason appears in the table.
struct Unavailable: Error, CustomStringConvertible {
    /// The reason, for the reader of the table.
    let description: String

    init(_ reason: String) {
        self.description = reason
    }
}
