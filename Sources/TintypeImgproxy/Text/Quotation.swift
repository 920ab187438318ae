// SPDX-License-Identifier: Apache-2.0

/// Texts of clients in messages.
enum Quotation {
    /// Returns the start of `text` between quotation marks.
    static func of(_ text: String) -> String {
        let start = text.prefix(80)
        return "\"\(start)\(start.endIndex == text.endIndex ? "" : "...")\""
    }
}
